"""Learners: pure functions of a pytree state behind one contract."""
