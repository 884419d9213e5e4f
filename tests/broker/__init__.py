"""The broker: its transport piece by piece, real workers against faults, and beats that compete."""
