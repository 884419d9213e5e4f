"""Pipeline of registration and examination of DLQs."""
