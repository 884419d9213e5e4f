"""Admin of what every page of the admin uses."""
