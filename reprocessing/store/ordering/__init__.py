"""Keep letters in order: store places in lanes, lease lanes, and find each lane's head (first unfinished letter).

A letter is a captured message. A lane is the queue of the letters with the same ordering key.
"""
