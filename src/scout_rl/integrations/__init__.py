"""SCOUT in other people's training loops: Gymnasium, Stable-Baselines3, and simulators on an accelerator."""
