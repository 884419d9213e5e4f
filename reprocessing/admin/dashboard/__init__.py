"""Admin of the first page."""
