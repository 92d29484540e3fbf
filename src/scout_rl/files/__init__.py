"""The one place that knows the disk: archives, caches, locks, and what damage raises."""
