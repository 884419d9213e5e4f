"""The SQL that decides: named statements, each a set of rows at a time."""
