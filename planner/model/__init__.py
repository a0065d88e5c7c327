"""How kinds add up: memory, one pass, prefill, decode, serving, cost. Formulas only, over plain quantities."""
