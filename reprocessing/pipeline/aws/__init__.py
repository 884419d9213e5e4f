"""Provisioning, alarms, metrics, and AWS's own redrive."""
