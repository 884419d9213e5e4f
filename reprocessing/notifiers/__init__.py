"""Reach people: the only package that speaks to Apprise, which runs in a process of its own (docs/adr/0034)."""
