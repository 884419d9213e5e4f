"""Statements for targets."""
