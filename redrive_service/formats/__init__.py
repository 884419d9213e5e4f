"""Date and time formats of all pages, with seconds, in UTC."""
