"""The sandbox: real PostgreSQL and Valkey, and a local SQS, on one machine, for tests, demos and a first try.

Only this package and the tests may import its modules, which import-linter checks. So a production process cannot start
a sandbox by mistake.
"""
