"""Store payloads sealed (encrypted) with data keys, open (decrypt) them for people, and erase them."""
