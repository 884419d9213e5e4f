"""Logs, traces and liveness files of the web server, beat and workers."""
