"""Read the settings that a configuration file describes, find policies, and record what the last apply wrote."""
