"""The demo's shop: it publishes events to its customers' systems, and its consumer fails one night.

`events` are what it publishes, `consumer` is the process that handles them, `calls` reads the local SQS's call
log, `world` runs the shop. None of them uses the service's code.
"""
