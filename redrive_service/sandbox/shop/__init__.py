"""The demo's world: a shop that tells its customers' systems what happened, and the night its consumer broke.

`events` are what it publishes, `consumer` is the process that should handle them, `calls` reads what the local SQS
saw, `world` makes it all happen. None of it knows the service.
"""
