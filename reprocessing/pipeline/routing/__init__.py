"""Evaluate routing rules, apply their decisions to letters, and preview what they would do."""
