"""Decide, in plain Python without Django and AWS. Time and random numbers are arguments, so tests can choose them."""
