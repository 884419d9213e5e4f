"""DLQs and their status."""
