"""Compute descriptions for AWS (queues to provision, IAM policies, alarms, metrics) and the prices of SQS."""
