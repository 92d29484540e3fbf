"""The allocation rules."""
