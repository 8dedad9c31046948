"""Cost formulas and the catalog of accelerators: numbers in, numbers out, no graph."""
