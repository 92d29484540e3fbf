"""Campaigns: a file of runs, what is left of them on disk, and the engines that run what is missing."""
