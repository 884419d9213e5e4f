"""What became of sent letters."""
