"""Layer 4 (see ARCHITECTURE.md): each module is one stage of a message's way, or one operation, such as a shred.

The functions return values, and enqueue no Celery tasks. Their callers (tasks, commands and views) enqueue tasks.
"""
