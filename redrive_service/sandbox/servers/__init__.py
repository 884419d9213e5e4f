"""Find, start and stop PostgreSQL, Valkey and the local SQS. A guard process ends each server with the sandbox."""
