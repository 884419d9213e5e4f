"""A local SQS, which answers as AWS does wherever a redrive depends on the answer.

The core (`LocalSqs`) is a deterministic state machine: every call has the time as an argument, and ids come from an
injected random generator, so equal calls give equal answers. The server adds HTTP, long polling, faults, a
call log and a journal.
Start it with `python -m redrive_service.sandbox.sqs`.
"""
