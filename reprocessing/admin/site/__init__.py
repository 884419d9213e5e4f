"""Parts that every page of the admin uses."""
