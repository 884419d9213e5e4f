"""Find and store the outcomes of sent messages, by evidence in SQS and by reports of consumers."""
