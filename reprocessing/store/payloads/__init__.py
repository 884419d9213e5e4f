"""Store payloads sealed (encrypted) with data keys, open them for people, and rotate, shred and erase them."""
