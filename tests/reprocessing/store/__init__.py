"""The SQL of what is remembered."""
