"""What people see and decide in the Django admin. History is read-only; what is decided is recorded with who and why.

Claims and custody have composite keys, which the admin cannot register: a letter's page shows them.
"""

from __future__ import annotations

from reprocessing.admin import (
    audit,
    brakes,
    groups,
    lanes,
    letters,
    notifications,
    operations,
    parking_lot,
    queues,
    records,
    rules,
    runs,
    targets,
)

__all__ = [
    "audit",
    "brakes",
    "groups",
    "lanes",
    "letters",
    "notifications",
    "operations",
    "parking_lot",
    "queues",
    "records",
    "rules",
    "runs",
    "targets",
]
