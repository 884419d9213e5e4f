"""Decide what the service does, without Django, SQL and AWS calls. Times and random numbers are given as arguments."""
