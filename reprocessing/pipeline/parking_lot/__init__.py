"""Release, discard, assign, edit and group parked letters; bulk actions; the SQS parking queue."""
