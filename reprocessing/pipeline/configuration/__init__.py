"""Plan and apply a configuration."""
