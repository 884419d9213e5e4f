"""Receive messages from a DLQ; recognise sent letters that came back; store the others as new letters."""
