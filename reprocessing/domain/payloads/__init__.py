"""Encrypt (seal) payloads with keys, and mask values in payloads that people see."""
