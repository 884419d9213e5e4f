"""Statements for lanes: their order, first letters and leases."""
