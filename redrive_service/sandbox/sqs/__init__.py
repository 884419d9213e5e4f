"""A local Amazon SQS that answers like AWS's wherever a redrive depends on the answer.

The core (`LocalSqs`) is a deterministic state machine: every call has the time as an argument, and ids come from an
injected random generator, so equal calls give equal answers. Around it: HTTP, long polling, faults, call log, journal.
Start it with `python -m redrive_service.sandbox.sqs`.
"""
