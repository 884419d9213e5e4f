"""Lists and pages of messages."""
