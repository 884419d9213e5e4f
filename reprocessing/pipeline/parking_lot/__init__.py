"""Release, discard, assign, edit and group parked letters, alone or in bulk; send notices to the SQS parking queue."""
