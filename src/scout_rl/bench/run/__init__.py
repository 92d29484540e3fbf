"""One training run: config, folder, loop, checkpoints, continuing and repeating."""
