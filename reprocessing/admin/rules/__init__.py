"""Admin pages that list, add, change, enable, disable and remove rules."""
