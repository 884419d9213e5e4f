"""Logs, traces and liveness files of web server, beat and workers."""
