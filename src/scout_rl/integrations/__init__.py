"""SCOUT in other people's training loops: Gymnasium, Stable-Baselines3, TRL, and simulators on an accelerator."""
