"""Encrypt payloads with this process's key ring, rotate keys, shred payloads, and erase all data with a value."""
