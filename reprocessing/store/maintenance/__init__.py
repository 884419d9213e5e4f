"""Maintain the database: check its schema, keep counts, delete old rows, and stop sends after a restore."""
