"""One file per kind: its record, its formulas, its reference."""
