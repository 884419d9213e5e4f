"""The rows of DLQs and their origins."""
