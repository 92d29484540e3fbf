"""The table of settings, the learner presets, the banks."""
