"""Search fields of a DLQ, their values in a message, and the language of the search box."""
