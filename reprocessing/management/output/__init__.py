"""Turn results into the text and the JSON that commands print."""
