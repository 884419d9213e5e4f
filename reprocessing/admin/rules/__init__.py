"""Admin of pages of rules."""
