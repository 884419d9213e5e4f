"""Admin pages of policies, and of objects that a configuration file manages."""
