"""Campaigns: a file of runs, their state on disk, and the engines that train the missing ones."""
