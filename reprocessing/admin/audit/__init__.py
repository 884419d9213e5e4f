"""Admin pages of the audit log, which records what people did."""
