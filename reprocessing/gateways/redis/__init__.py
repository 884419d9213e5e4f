"""Use Redis for send rates, for the HTTP API's request rates, and for tick counts (how many ticks beat has sent).

The tick counts show whether PostgreSQL was restored from a backup.
"""
