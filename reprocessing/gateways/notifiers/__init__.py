"""Send notifications with Apprise, which runs in a process of its own (docs/adr/0034).

No other package uses Apprise.
"""
