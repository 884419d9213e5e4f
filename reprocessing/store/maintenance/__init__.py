"""Maintain the database: check its schema, keep counts, delete old rows, hold sends after a restore."""
