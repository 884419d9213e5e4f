"""Read and write configuration files: keys, values and the JSON Schema come from the options of the commands."""
