"""Domain of what messages failed in: queues, functions, subscriptions, rules, Celery tasks."""
