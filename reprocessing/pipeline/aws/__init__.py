"""Pipeline of provisioning, IAM, alarms, metrics, native redrive, prices."""
