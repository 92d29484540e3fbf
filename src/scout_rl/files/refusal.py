"""The error for a mistake that is not in this package."""


class Refusal(ValueError):
    """One sentence for the user: what is wrong, where, and what to do."""
