"""Read configuration files, and compare them with what is stored."""
