"""Decide what the service does, without Django, SQL and AWS calls. Callers give the current time as an argument."""
