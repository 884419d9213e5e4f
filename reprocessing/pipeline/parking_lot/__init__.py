"""Release, discard, assign, edit and group parked letters, singly or in bulk; notify the SQS parking queue."""
