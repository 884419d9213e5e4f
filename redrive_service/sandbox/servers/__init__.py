"""Find, start and stop the sandbox's servers: PostgreSQL, Valkey and the local SQS. A guard process watches each."""
