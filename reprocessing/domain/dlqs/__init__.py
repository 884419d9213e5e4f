"""Describe DLQs that discovery finds: their sources, when SQS drops their messages, and a name for each DLQ."""
