"""Use Redis for send rates, and for the tick counts by which a restored backup of PostgreSQL is detected."""
