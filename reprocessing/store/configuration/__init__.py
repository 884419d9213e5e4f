"""Read the stored settings that a configuration file can set, find policies, and record what the last apply wrote."""
