"""Ordering: the lane of a letter, and its place in the lane."""
