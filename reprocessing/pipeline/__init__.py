"""Layer 4: each module is one stage or one operation.

Stages return values; only tasks, commands and views enqueue tasks.
"""
