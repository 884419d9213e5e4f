"""The only package that uses Apprise, which runs in a process of its own (docs/adr/0034)."""
