"""Read and write configuration files. The keys of a file are the options of the commands that set the same values."""
