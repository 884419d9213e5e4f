"""Read configuration files, and compare their settings with the stored settings."""
