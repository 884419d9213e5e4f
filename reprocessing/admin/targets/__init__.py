"""Admin of where messages are redriven to: kinds, registration, signatures."""
