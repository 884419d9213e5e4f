"""Maintain the service: recover after failures, delete old rows, handle a restored database, run redrive_doctor."""
