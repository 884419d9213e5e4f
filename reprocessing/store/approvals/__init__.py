"""Decide which deeds (actions of a person) need a second person, and store the requests for that person's approval."""
