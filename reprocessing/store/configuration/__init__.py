"""Read the settings that a configuration file can set, and record what the last `apply_config` wrote."""
