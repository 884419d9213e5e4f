"""AWS: queues to provision, IAM policies, alarms, metrics and prices."""
