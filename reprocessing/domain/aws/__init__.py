"""Compute what the service needs in AWS (queues, IAM policies, alarms, metric names), and what SQS costs."""
