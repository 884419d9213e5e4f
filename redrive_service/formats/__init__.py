"""Date and time formats of the pages: the same everywhere, with seconds, in UTC."""
