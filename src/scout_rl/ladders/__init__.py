"""Starts per cell for anyone's environment: from a function, states, a trajectory, a policy or a Minari dataset."""
