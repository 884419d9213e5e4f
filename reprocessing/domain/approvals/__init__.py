"""Approvals: deeds that need a second person."""
