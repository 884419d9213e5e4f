"""Admin of lists and pages of messages."""
