"""Maintain the database: check its schema, keep counts, delete old rows, define roles, hold sends after a restore."""
