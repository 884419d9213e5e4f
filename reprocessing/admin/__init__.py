"""Pages of the admin. What happened is read-only; each decision is recorded with user and reason.

Claims and custody have composite keys, which Django's admin cannot register: a message's page shows them.
"""

from __future__ import annotations

# Imported whole: `from … import parking_lot` would hide the folder of that name behind its module.
import reprocessing.admin.audit.audit_log
import reprocessing.admin.dlqs.dlqs
import reprocessing.admin.messages.messages
import reprocessing.admin.messages.records
import reprocessing.admin.notifications.notifications
import reprocessing.admin.parking_lot.bulk_action_pages
import reprocessing.admin.parking_lot.failure_group_pages
import reprocessing.admin.parking_lot.parking_lot
import reprocessing.admin.rules.rules
import reprocessing.admin.runs.runs
import reprocessing.admin.safety.safety_lists
import reprocessing.admin.targets.targets  # noqa: F401  it registers its pages
