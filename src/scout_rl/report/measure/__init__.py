"""Numbers and tables from that value: pure functions."""
