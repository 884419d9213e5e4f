"""Pages of targets."""
