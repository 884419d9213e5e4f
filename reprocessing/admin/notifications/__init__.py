"""Admin of pages of notifications."""
