"""Keep payloads sealed in the database: data keys, opened content, rotation, shredding and erasure."""
