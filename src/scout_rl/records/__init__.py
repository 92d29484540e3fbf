"""What a training leaves behind: tables of windows and events, evaluations, who made it; whole or compact."""
