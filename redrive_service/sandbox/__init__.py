"""The embedded stack: real PostgreSQL and Valkey, and a local SQS, for tests, demos and a first try.

Nothing outside this package and the tests may import it (import-linter proves it), so a production process cannot
start a sandbox by mistake.
"""
