"""Domain of provisioning, IAM, alarms, metrics, native redrive, prices."""
