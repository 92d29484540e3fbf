"""From run records to numbers and tables: pure functions."""
