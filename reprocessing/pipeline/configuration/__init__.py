"""Plan and apply a configuration file: compare it with the stored settings, and write the differences."""
