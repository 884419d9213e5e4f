"""The only package that uses Apprise, which runs in a separate process (docs/adr/0034)."""
