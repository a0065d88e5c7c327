"""One file per form an answer takes."""
