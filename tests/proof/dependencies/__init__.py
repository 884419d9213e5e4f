"""A real worker and beat that drain dlqs while Postgres, Redis and SQS fail under them.

They have servers of their own (`own_servers`), which may be hurt. Letters are buried all the time (`flow`), faults
strike (`outages`: Postgres and Redis; `refusals`: SQS), and after each the judge has the word (`verdict`), once
everything is finished. `world` puts it together.
"""
