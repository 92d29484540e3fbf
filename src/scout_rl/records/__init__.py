"""The records of a training: tables of windows and events, evaluations, what made them; as a folder or compact."""
