"""Start, list and abort bulk actions. A bulk action changes all messages that a filter matches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID, uuid5

from django.http import HttpRequest
from ninja import Router

from reprocessing import conf
from reprocessing.api.approvals.approval_answers import ApprovalNeededAnswer
from reprocessing.api.messages.message_query import MessageQuery, read_filter
from reprocessing.api.parking_lot.decision_answers import (
    AbortAnswer,
    AbortRequest,
    BulkActionPage,
    BulkActionView,
    BulkAnswer,
    BulkRequest,
    CountView,
    SkippedView,
    require_assignee,
    require_future,
)
from reprocessing.api.site import paging
from reprocessing.api.site.caller import Caller, caller_of
from reprocessing.api.site.document import changes, reads
from reprocessing.api.site.guard import acts
from reprocessing.api.site.paging import After, Limit
from reprocessing.api.site.problems import conflict
from reprocessing.domain.api.scopes import Scope
from reprocessing.domain.errors import InvalidFilter
from reprocessing.domain.parking_lot.bulk_edit import BulkEdit
from reprocessing.domain.parking_lot.json_patch import JsonPatch
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.models import BulkAction, BulkActionKind, BulkActionState
from reprocessing.pipeline.parking_lot import preview_edit, release_target, start_bulk_action
from reprocessing.store.ordering import lanes
from reprocessing.store.parking_lot import bulk_actions, filtered_letters
from reprocessing.store.payloads import viewed_content
from reprocessing.store.search import stored_filters

router: Final = Router()
_ANSWERS: Final = {200: BulkAnswer, 202: ApprovalNeededAnswer}
_TAG: Final = "Bulk actions"
#: Namespace of the UUIDs that are derived from idempotency keys, so that a repeated request starts nothing twice.
_NAMESPACE: Final = UUID("6c1f7c52-5f6c-4a35-8f0e-6b9f5c0c6d11")
#: Max messages that the dry run of an edit checks, and the seconds after which it checks no further message.
_CHECKED: Final = 1_000
_SECONDS: Final = 1.0
_SCOPES: Final = {
    BulkActionKind.RELEASE: Scope.MESSAGES_RELEASE, BulkActionKind.DISCARD: Scope.MESSAGES_DISCARD,
    BulkActionKind.RESTORE: Scope.MESSAGES_DISCARD, BulkActionKind.ASSIGN: Scope.MESSAGES_ASSIGN,
    BulkActionKind.NOTE: Scope.MESSAGES_ASSIGN, BulkActionKind.EDIT: Scope.MESSAGES_EDIT,
}  # fmt: skip


@reads(router, "/bulk-actions", Scope.MESSAGES_READ, BulkActionPage, tag=_TAG)
def list_bulk_actions(request: HttpRequest, limit: Limit = paging.DEFAULT, after: After = "") -> BulkActionPage:
    """List bulk actions, the newest first."""
    found, following = paging.page_by_id(caller_of(request).rows(BulkAction.objects), after=after, limit=limit)
    return BulkActionPage(items=[_view(action) for action in found], next=following)


@reads(router, "/bulk-actions/{int:bulk_action}", Scope.MESSAGES_READ, BulkActionView, tag=_TAG)
def get_bulk_action(request: HttpRequest, bulk_action: int) -> BulkActionView:
    """Show a bulk action and its progress."""
    return _view(caller_of(request).row(BulkAction.objects, "bulk action", pk=bulk_action))


@changes(router, "/bulk-actions", Scope.MESSAGES_READ, _ANSWERS, tag=_TAG)
def start_bulk(request: HttpRequest, bulk: BulkRequest) -> BulkAnswer:
    """Release, discard, restore, assign, annotate or edit all messages that a filter matches.

    Workers change the messages in batches. The token also needs the scope of the action: messages:release;
    messages:discard (also to restore); messages:assign (also for notes); or messages:edit and messages:bodies.
    """
    caller, kind = caller_of(request), BulkActionKind(bulk.action)
    caller.require(_SCOPES[kind])
    criteria, arguments = read_filter(_with_state(kind, bulk.filter), caller), _arguments(caller, kind, bulk)
    start_bulk_action.require_decidable(kind, criteria)
    if kind is BulkActionKind.EDIT and viewed_content.masks_fields(criteria.dlq):
        raise InvalidFilter("An edit could reveal masked values of these messages. Edit them in the admin.")
    seen_at = bulk.seen_at or lanes.database_now()
    counts = [
        CountView(dlq=count.dlq, state=count.state, reason=count.reason or None, messages=count.n)
        for count in filtered_letters.counts_by_reason(criteria)
    ]
    matching = f"{filtered_letters.counted(sum(count.messages for count in counts))} messages match."
    if not acts(request, confirm=bulk.confirm):
        says = [matching, *_fitting(criteria, arguments)] if kind is BulkActionKind.EDIT else [matching]
        return BulkAnswer(dry_run=True, changed=False, says=says, seen_at=seen_at, counts=counts, bulk_action=None)
    token = uuid5(_NAMESPACE, f"{caller.token.pk} {caller.key}")
    new = bulk_actions.create(token, kind, criteria, arguments, by=caller.by, reason=bulk.reason, opened=bulk.seen_at)
    made = _view(BulkAction.objects.get(token=token))
    verb = "add the note to" if kind is BulkActionKind.NOTE else kind.value
    says = [matching, f"Workers {verb} the messages that are still {criteria.states[0]}."]
    return BulkAnswer(dry_run=False, changed=new, says=says, seen_at=seen_at, counts=counts, bulk_action=made)


@changes(router, "/bulk-actions/{int:bulk_action}/abort", Scope.MESSAGES_READ, AbortAnswer, tag=_TAG)
def abort_bulk_action(request: HttpRequest, bulk_action: int, change: AbortRequest) -> AbortAnswer:
    """Abort a bulk action.

    Messages that were changed stay changed. The token also needs the scope of the action, such as messages:release.
    """
    caller = caller_of(request)
    row = caller.row(BulkAction.objects, "bulk action", pk=bulk_action)
    caller.require(_SCOPES[BulkActionKind(row.act)])
    if row.state != BulkActionState.RUNNING:
        raise conflict(f"The bulk action is {row.state} already.")
    if not acts(request, confirm=change.confirm):
        says = ["It would be aborted. Messages that were changed stay changed."]
        return AbortAnswer(dry_run=True, changed=False, says=says, bulk_action=_view(row))
    if not bulk_actions.abort(row.pk, by=caller.by, why=change.reason):
        raise conflict("The bulk action ended before it could be aborted.")
    row.refresh_from_db()
    says = ["It is aborted. Messages that were changed stay changed."]
    return AbortAnswer(dry_run=False, changed=True, says=says, bulk_action=_view(row))


def _with_state(kind: BulkActionKind, query: MessageQuery) -> MessageQuery:
    """Return the filter. If it has no state, add the only state in which the action is possible, such as parked."""
    return query if query.state else query.model_copy(update={"state": [start_bulk_action.STATES[kind]]})


def _arguments(caller: Caller, kind: BulkActionKind, bulk: BulkRequest) -> dict[str, Any]:
    if kind is not BulkActionKind.RELEASE and (bulk.at or bulk.target):
        raise InvalidFilter("`at` and `target` are for releases. Leave them out.")
    if (kind is BulkActionKind.EDIT) != (bulk.patch is not None):
        raise InvalidFilter("`patch` is for edits, which need it: a JSON Patch as a text.")
    if bulk.patch is None and (bulk.release or bulk.changes_keys):
        raise InvalidFilter("`release` and `changes_keys` are for edits. Leave them out.")
    if bulk.patch is not None:
        return _edit(caller, bulk, bulk.patch)
    if (kind is BulkActionKind.ASSIGN) != (bulk.to is not None):
        raise InvalidFilter("`to` is for assignments, which need it. An empty text assigns to nobody.")
    require_future(bulk.at)
    found: dict[str, Any] = {"due": bulk.at.isoformat()} if bulk.at else {}
    if bulk.to is not None:
        require_assignee(bulk.to)
        found["to"] = bulk.to
    if bulk.target:
        cure = "Add the target in the admin, or send the name of another target."
        found["target"] = release_target.find_target(bulk.target, seen=caller.seen, cure=cure).pk
    return found


def _edit(caller: Caller, bulk: BulkRequest, patch: str) -> dict[str, Any]:
    caller.require(Scope.MESSAGES_BODIES)
    if bulk.release:
        caller.require(Scope.MESSAGES_RELEASE)
    wanted = BulkEdit(JsonPatch.parse(patch), release=bulk.release, changes_keys=bulk.changes_keys)
    return wanted.arguments()


def _fitting(criteria: MessageFilter, arguments: dict[str, Any]) -> Iterator[str]:
    """Yield sentences that say how many messages of a filter the patch of a bulk edit fits, and why not the others.

    Only the newest messages are checked.
    """
    letters = filtered_letters.newest_ids(criteria, limit=_CHECKED)
    wanted, names = BulkEdit.read(arguments), conf.current().marks
    found = preview_edit.preview(letters, wanted, names, seconds=_SECONDS, samples=0)
    yield f"The patch fits {found.fits:,} of the {found.checked:,} newest messages."
    yield from (f"{n:,} would not be changed, since {why}." for why, n, _ in found.unfit)
    yield from (f"{n:,}: {sentence}" for sentence, n in found.touched)


def _view(row: BulkAction) -> BulkActionView:
    recorded = stored_filters.read_filter(row.filter).recorded()
    return BulkActionView(
        id=row.pk, action=row.act, state=row.state,
        filter={name: value for name, value in recorded.items() if name != "dlqs"}, by=row.by, reason=row.reason,
        asked_at=row.asked_at, finished_at=row.finished_at, messages=row.asked, done=row.done,
        skipped=row.letters_skipped, aborted_by=row.aborted_by or None, why_aborted=row.why or None,
        skipped_because=[
            SkippedView(why=why, messages=n) for why, n in Counter(row.refusals.values()).most_common()
        ],
    )  # fmt: skip
