"""Maintain the service: recover after failures, purge old rows, handle a restored database, run the doctor's checks."""
