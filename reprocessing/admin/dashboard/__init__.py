"""The dashboard: the start page of the admin, and the page of each DLQ."""
