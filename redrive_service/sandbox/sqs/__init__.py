"""A local SQS, which answers as AWS does wherever a redrive depends on the answer.

The core (`LocalSqs`) is a deterministic state machine: time and random numbers are arguments, so equal calls give equal
answers. The server adds HTTP, long polling, faults for tests, a call log, and a journal that survives kill -9.
To start the server, run `python -m redrive_service.sandbox.sqs`.
"""
