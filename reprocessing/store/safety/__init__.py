"""Attempts that do not count, targets that keep failing, runs that pause, loops."""
