"""Celery's road to SQS: kombu's transport with its faults contained (docs/adr/0001).

`transport` is what Celery is pointed at, `configuration` says how. The rest is one mechanism a file: `version` refuses
a kombu the containment was not proved on, `patience` holds every wait, `failure` names what went wrong, `record` counts
it, `wire` speaks HTTP, `clients` makes the clients, `settlement` ends a message, `channel` keeps the poll alive,
`envelope` knows a task of ours,
`consumer` leaves alone what is no task of ours.
"""
