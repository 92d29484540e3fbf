"""SCOUT in other people's training loops: Gymnasium and Stable-Baselines3."""
