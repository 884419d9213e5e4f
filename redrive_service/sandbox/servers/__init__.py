"""The sandbox's servers (PostgreSQL, Valkey, the local SQS): found, started under a guard, and stopped."""
