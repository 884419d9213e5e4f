"""Index the values of search fields again after a setting changed."""
