"""Encrypt payloads with the key ring of this process, rotate keys, shred payloads, and erase a person's data."""
