"""Provision queues, put alarms, publish metrics, and use AWS's own redrive."""
