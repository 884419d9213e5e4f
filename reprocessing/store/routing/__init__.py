"""Statements for rules, conditions and rate classes."""
