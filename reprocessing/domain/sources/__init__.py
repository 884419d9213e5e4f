"""Read messages by source: queues, functions, subscriptions, rules, and Celery."""
