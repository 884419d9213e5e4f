"""What people see and decide in the Django admin. History is read-only; what is decided is recorded with who and why.

Claims and custody have composite keys, which the admin cannot register: a letter's page shows them.
"""

from __future__ import annotations

from reprocessing.admin.audit import audit_log
from reprocessing.admin.dlqs import dlqs
from reprocessing.admin.messages import messages, records
from reprocessing.admin.notifications import notifications
from reprocessing.admin.parking_lot import bulk_action_pages, failure_group_pages, parking_lot
from reprocessing.admin.rules import rules
from reprocessing.admin.runs import runs
from reprocessing.admin.safety import lanes, send_limits
from reprocessing.admin.targets import targets

__all__ = [
    "audit_log",
    "bulk_action_pages",
    "dlqs",
    "failure_group_pages",
    "lanes",
    "messages",
    "notifications",
    "parking_lot",
    "records",
    "rules",
    "runs",
    "send_limits",
    "targets",
]
