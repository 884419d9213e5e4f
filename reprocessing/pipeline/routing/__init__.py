"""Evaluate routing rules, apply their decisions, and preview them."""
