"""Store of receiving from a DLQ, copies held in SQS, returns."""
