"""One training run: its config, its folder, the loop, checkpoints, continuing and repeating it."""
