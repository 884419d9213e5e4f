"""The service's decisions, without Django, SQL and AWS calls. Times and random numbers are arguments, for tests."""
