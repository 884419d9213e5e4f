"""Decide when sending slows down, pauses, or goes on: whose fault a failure is, and when a person is needed."""
