"""The demo's shop: it publishes events to its customers' systems, and its consumer fails one night.

`events` makes the shop's events, `consumer` is the process that handles them, `calls` reads the local SQS's call log,
`world` runs the shop. No module uses the service's code.
"""
