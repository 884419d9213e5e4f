"""Plan and apply a configuration file."""
