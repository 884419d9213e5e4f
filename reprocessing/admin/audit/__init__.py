"""Admin of pages of the audit log."""
