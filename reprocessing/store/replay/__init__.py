"""Record sends: each attempt before its letter is sent, and its result. Decide how many tasks beat sends to workers."""
