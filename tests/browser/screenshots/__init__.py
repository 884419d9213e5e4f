"""Screenshots of the admin for the documentation."""
