"""A state machine over the pipeline's own code, a real Postgres and the local SQS's core: one thread, virtual time.

The seeded simulation lets many workers meet by chance. Here Hypothesis chooses the steps, and takes away what a failure
does not need: what is left over is read as a short tale. Workers are turns that stop between two steps, and go on, or
do not, many steps later; whatever runs as a whole may be killed before any of its statements, commits and requests.

`ground` is the world, `turns` the workers, `machine` the steps, `actions` what these are made of, `promises` what holds
after each of them. A failure prints its steps; python -m tests.proof.machine SEED plays a chunk of the long form again.
"""
