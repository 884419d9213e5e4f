"""Layer 4 (see ARCHITECTURE.md): each module is one step of redriving, such as capture, or one operation of a person.

The functions return values, and enqueue no Celery tasks. The callers of the functions (tasks, commands and views)
enqueue tasks.
"""
