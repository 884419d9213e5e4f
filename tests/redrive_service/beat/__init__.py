"""The scheduler, its leadership, and beats that compete for one schedule."""
