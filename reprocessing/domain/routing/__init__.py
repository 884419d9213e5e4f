"""Evaluate rules: conditions on the fields of a letter, and the first rule that matches."""
