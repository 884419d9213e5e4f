"""Layer 4: one stage or operation a module. Stages return values; only tasks, commands and views enqueue tasks."""
