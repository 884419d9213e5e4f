"""Celery's transport for SQS: kombu's own, with its faults contained (docs/adr/0001).

`transport` is what Celery is pointed at, `configuration` says how. Each other module has one task: `version` refuses a
kombu that the containment was not tested with, `patience` holds every timeout, `failure` describes a failed receive,
`wire` speaks HTTP, `clients` makes the clients, `settlement` deletes messages or leaves them to SQS, `channel` keeps
polling, `envelope` recognises our own tasks, and `consumer` leaves all other messages to SQS.
"""
