"""The HTTP API: what the admin and the commands do, for programs. Each folder is a capability."""
