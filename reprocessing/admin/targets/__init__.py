"""Admin pages that list, add and change targets."""
