"""The HTTP API, with which programs do what people do in the admin. Each folder has one kind of operation."""
