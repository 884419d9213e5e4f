"""Release, discard, assign, edit and group parked letters, and copy them to the SQS parking queue."""
