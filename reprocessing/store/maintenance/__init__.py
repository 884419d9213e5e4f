"""Checks of the database's schema."""
