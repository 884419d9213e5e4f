"""The URL paths of the HTTP API, below /api/v1/."""

from __future__ import annotations

from typing import Final

from reprocessing.api.approvals import approvals
from reprocessing.api.dlqs import dlqs
from reprocessing.api.messages import messages
from reprocessing.api.parking_lot import bulk_actions, decisions
from reprocessing.api.rules import rules
from reprocessing.api.runs import runs
from reprocessing.api.safety import stops
from reprocessing.api.site import problems
from reprocessing.api.site.document import RedriveAPI
from reprocessing.api.site.json_body import UniqueKeysParser
from reprocessing.domain.approvals.requested_action import ApprovalNeeded

api: Final = RedriveAPI(
    parser=UniqueKeysParser(), title="Redrive", version="1", urls_namespace="api", docs_url=None,
    description="Redrives Amazon SQS dead-letter queues. For programs that do what people do in the admin. docs/api.md "
    "explains tokens, dry runs and idempotency keys.",
)  # fmt: skip
for router in (
    dlqs.router,
    stops.router,
    messages.router,
    decisions.router,
    bulk_actions.router,
    runs.router,
    rules.router,
    approvals.router,
):
    api.add_router("", router)
problems.add_handlers(api)
api.add_exception_handler(ApprovalNeeded, approvals.request_approval)  # type: ignore[arg-type]  # an instance
