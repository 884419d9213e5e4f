"""Encrypt payloads, change the encryption keys, and remove data for good (shred or erase).

To shred is to make the payloads of a DLQ unreadable: its encryption keys are destroyed, and its payloads are deleted.
To erase is to remove one value, such as a customer's number: the messages that have the value, and the value in texts.
"""
