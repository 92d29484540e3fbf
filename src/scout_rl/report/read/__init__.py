"""Records of any kind as one value."""
