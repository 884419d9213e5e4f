"""Celery's transport for SQS: kombu's own, with workarounds for its bugs (docs/adr/0001).

Celery uses `transport`; `configuration` returns its settings. Each other module has one task: `version` refuses a
kombu that was not tested with the workarounds, `timeouts` holds every timeout, `failure` describes a failed receive,
`wire` speaks HTTP, `clients` makes the clients, `settlement` deletes messages or leaves them to SQS, `channel` keeps
polling, `envelope` recognises this service's own tasks, and `consumer` leaves all other messages to SQS.
"""
