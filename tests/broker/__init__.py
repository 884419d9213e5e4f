"""The broker: its transport piece by piece, and real workers against faults."""
