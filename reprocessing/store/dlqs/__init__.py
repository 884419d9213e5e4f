"""Store DLQs, their source queues and their schedules."""
