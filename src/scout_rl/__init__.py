"""SCOUT: per-context reset curricula for sparse-reward reinforcement learning."""

__version__ = "0.1.0"
