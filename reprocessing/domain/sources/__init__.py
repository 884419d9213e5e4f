"""What messages failed in: queues, functions, subscriptions, rules; and Celery task messages."""
