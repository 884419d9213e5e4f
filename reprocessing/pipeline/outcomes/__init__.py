"""Find out whether sent letters were processed: by evidence in SQS, or by reports of consumers."""
