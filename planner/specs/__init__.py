"""Records composed from kinds, and the library that finds and reads them."""
