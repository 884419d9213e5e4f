"""The indexed values of search fields, and saved filters."""
