"""What keeps the database whole: what it has to hold, compared with what it holds."""
