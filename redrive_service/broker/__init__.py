"""Celery's transport for SQS: kombu's own, with workarounds for its bugs (docs/adr/0001).

Celery uses the module `transport`; `configuration` returns Celery's settings for it. The other modules:

    version: refuse a kombu that was not tested with the workarounds.
    timeouts: define every timeout and pause.
    wire: send HTTP requests to SQS.
    clients: make the SQS clients.
    channel: receive messages, and continue after a failed receive.
    failure: describe a failed receive for the log.
    settlement: delete the messages of finished tasks, and leave other messages to SQS.
    envelope: recognise the tasks of this service.
    consumer: leave messages that are no tasks of this service to SQS.
"""
