"""Failpoints: real processes in which a fault strikes at a named step of a letter's life.

`points` are the steps, `faults` what strikes there, `cells` each honest pair of them. A cell is a small dlq and two
workers, each a process that calls the bodies of the tasks as Celery would; one of them is armed (`worker`, `trap`). The
fault fires once, the healthy finish everything, and the judge reads what the queues saw (`world`, `verdict`, `trial`).
Each `booth` is a process with a database of its own, and tries one cell after another.
"""
