"""The rows of DLQs and their sources."""
