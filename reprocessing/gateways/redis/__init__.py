"""Use Redis for send rates, for the HTTP API's request rates, and for tick counts.

A tick is a task that Celery beat sends every 2 s, and counts in PostgreSQL. If Redis has a higher count, PostgreSQL was
restored from a backup.
"""
