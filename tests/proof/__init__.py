"""The proof: what tries to break every promise; a short form with the other tests, a long one by `make prove`.

`machine` has a state machine over Postgres, `simulation` seeded worlds in virtual time, `failpoints` real processes
that die at named steps, `dependencies` servers that fail under workers, `planted` bugs that must be caught, `poison`
payloads. What the long form proved adds up in a ledger; `python -m tests.proof` tells it.
"""
