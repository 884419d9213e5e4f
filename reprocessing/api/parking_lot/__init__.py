"""Decisions about messages, and bulk actions."""
