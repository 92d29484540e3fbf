"""The starts of a setting: built by hand, from the solver or from policies; checked, cached, drawn."""
