"""The Django application that captures dead messages, redrives them in order, and records their outcomes."""
