"""The HTTP API, with which programs do what people do in the admin. Each folder has one capability, such as rules."""
