"""The pages of the admin. People cannot edit rows there; each decision is recorded with user and reason.

Models with composite keys have no pages of their own, because Django's admin cannot register such models. The page of
a message shows their rows.
"""

from __future__ import annotations

# Not `from … import parking_lot`: that would replace the package `admin.parking_lot` by its module of the same name.
import reprocessing.admin.api.tokens
import reprocessing.admin.approvals.approvals
import reprocessing.admin.audit.audit_log
import reprocessing.admin.configuration.managed_objects
import reprocessing.admin.dlqs.discover
import reprocessing.admin.dlqs.dlqs
import reprocessing.admin.dlqs.teams
import reprocessing.admin.messages.messages
import reprocessing.admin.messages.records
import reprocessing.admin.notifications.notifications
import reprocessing.admin.parking_lot.bulk_action_pages
import reprocessing.admin.parking_lot.failure_group_pages
import reprocessing.admin.parking_lot.parking_lot
import reprocessing.admin.rules.rules
import reprocessing.admin.runs.runs
import reprocessing.admin.safety.safety_lists
import reprocessing.admin.targets.targets  # noqa: F401  the import registers the pages
