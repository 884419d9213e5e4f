"""What a configuration file manages."""
