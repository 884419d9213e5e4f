"""Celery's transport for SQS: kombu's transport, with workarounds for kombu's bugs (docs/adr/0001).

Celery uses the module `transport`; `configuration` returns Celery's settings for it. The other modules:

    version: refuse a version of kombu that was not tested with the workarounds.
    timeouts: define every timeout and pause.
    wire: send HTTP requests to SQS.
    clients: make the SQS clients.
    channel: receive messages, and continue after a failed receive.
    failure: describe a failed receive for the log.
    settlement: delete the messages of finished tasks, and leave all other messages in SQS.
    envelope: recognise the tasks of this service.
    consumer: leave messages in SQS if they are not tasks of this service.
"""
