"""Evaluate rules: read a letter's fields, check the conditions, and find the first rule that matches."""
