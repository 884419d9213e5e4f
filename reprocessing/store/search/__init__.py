"""Store the values of search fields, by which people find messages, and saved filters."""
