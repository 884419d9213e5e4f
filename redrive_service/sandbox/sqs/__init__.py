"""A local Amazon SQS whose answers match AWS's wherever a redrive depends on them.

The core (`LocalSqs`) is a deterministic state machine: the clock is an argument of every call and ids come from
injected dice, so equal calls give equal answers. Around it: HTTP, long polling, a fault plan, a call log and a journal.
Start it with `python -m redrive_service.sandbox.sqs`.
"""
