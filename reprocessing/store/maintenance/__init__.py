"""Maintain the database: schema checks, counters, retention, roles, audit log, and the hold after a restore."""
