"""Decide which actions of people need the approval of a second person, and store the requests for approval."""
