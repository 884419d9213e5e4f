"""SQL statements and the functions that run them, by subject. Each statement handles a set of rows."""
