"""Pages of policies and of objects that a configuration file manages."""
