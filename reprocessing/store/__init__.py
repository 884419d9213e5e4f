"""SQL statements and the functions that run them, in a folder for each capability. A statement handles many rows.

A letter is a captured message. A lane is the queue of the letters that have one ordering key. A copy is a message in
SQS with the bytes of a letter.
"""
