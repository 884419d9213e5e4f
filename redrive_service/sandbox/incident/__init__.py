"""The demo's incident: it is told as a scenario, and the service's brakes are observed meanwhile."""
