"""What the package raises where the fault is not its own."""


class Refusal(ValueError):
    """One sentence for the user: what is wrong, where, and what to do."""
