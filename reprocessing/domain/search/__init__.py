"""Read a DLQ's search fields, their values in messages, and the text that people type into the search box."""
