"""Contains the SQL statements and the functions that run them, with a folder for each subject, such as capture.

One statement handles many rows. The code calls a captured message a letter. A lane is the queue of the letters with the
same ordering key, which are sent in order. A copy is a message in a DLQ whose content is stored as a letter.
"""
