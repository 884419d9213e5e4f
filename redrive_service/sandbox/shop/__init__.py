"""The shop of the demo: it sends messages about events, such as paid orders, to a queue, and its consumer fails.

`events` makes the events. `consumer` is the process that handles the messages. `calls` reads the call log of the local
SQS. `world` runs the shop. No module uses code of the service.
"""
