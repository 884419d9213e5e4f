"""Add groups of options, such as those of a DLQ or a target, to the commands that have them."""
