"""Seeded worlds: the pipeline's own code and a real Postgres, in which one seed throws all other dice.

Workers are threads of which one moves at a time. They change places before each statement, before and after each
commit, around each call of SQS; there they die, freeze past their leases, or lose their connection. Time is virtual,
for Postgres too, and the queues are the local SQS's core. The judge reads what those saw. What stands aside: threads
inside the pipeline (several receivers of one dlq, requests side by side), Redis, slow targets; they have other tests.

`stage` moves the actors, `wire` is Postgres under them, `near` SQS, `cast` what they play, `plot` what a seed says of
the world, `world` puts it together. One seed again: python -m tests.proof.simulation SEED
"""
