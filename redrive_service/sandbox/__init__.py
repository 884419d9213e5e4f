"""The embedded stack: real PostgreSQL and Valkey, and a local SQS, for tests, demos and a first try.

Only this package and the tests may import it, which import-linter checks. So a production process cannot start a
sandbox by mistake.
"""
