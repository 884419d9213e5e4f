"""Store which DLQs AWS itself redrives (`StartMessageMoveTask`), and the values of the service's own metrics."""
