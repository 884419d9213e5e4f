"""The search page, and saved filters."""
