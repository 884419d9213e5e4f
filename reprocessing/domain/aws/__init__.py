"""Describe queues to provision, IAM policies, alarms, metrics and prices of AWS."""
