"""Use Redis for send rates, for the HTTP API's request rates, and for tick counts.

A tick count shows whether PostgreSQL was restored from a backup.
"""
