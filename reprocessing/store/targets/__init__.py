"""Store of where messages are redriven to: kinds, registration, signatures."""
