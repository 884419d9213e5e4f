"""Store the outcomes of sent messages, from evidence in SQS and from consumer reports."""
