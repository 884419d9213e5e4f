"""Date and time formats of English, the only language of the pages."""
