"""The formats in English, the only language of the pages."""
