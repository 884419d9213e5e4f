"""Pages of rules."""
