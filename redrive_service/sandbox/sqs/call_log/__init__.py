"""The call log: what was asked, answered, and refused."""
