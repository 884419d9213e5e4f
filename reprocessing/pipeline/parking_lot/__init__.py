"""Release, discard, assign, edit and group parked letters, singly or in bulk; send notices to the SQS parking queue."""
