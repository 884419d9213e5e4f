"""Logs and traces of web server, beat and workers."""
