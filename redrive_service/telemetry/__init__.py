"""Logs, traces and signs of life of web server, beat and workers."""
