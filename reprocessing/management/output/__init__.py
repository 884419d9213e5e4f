"""Convert results of commands to the text and the JSON that the commands print."""
