"""Layer 4 (see ARCHITECTURE.md): each module is one stage or one operation.

Stages return values. Only tasks, commands and views enqueue Celery tasks.
"""
