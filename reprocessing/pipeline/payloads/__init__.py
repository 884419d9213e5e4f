"""The key ring of this process, key rotation, shredding and erasure."""
