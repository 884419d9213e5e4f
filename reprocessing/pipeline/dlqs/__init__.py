"""Discover DLQs in AWS, and examine DLQs and targets before they are registered."""
