"""Approvals: which deeds need a second person, and the requests for it."""
