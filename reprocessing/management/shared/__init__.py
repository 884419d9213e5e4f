"""Base classes and functions that several commands use."""
