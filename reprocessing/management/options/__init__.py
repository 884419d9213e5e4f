"""Add groups of options that several commands share, such as the options of a DLQ or of a target."""
