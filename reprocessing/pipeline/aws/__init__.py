"""Create queues and alarms in AWS, publish metrics to CloudWatch, and use AWS's own redrive."""
