"""The one place that knows the disk: archives, caches, locks, damaged files and refusals."""
