"""Read the values that a message's page shows. The page shows the payload only on request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any, Final

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, PermissionsMixin
from django.db.models import Q, QuerySet
from django.urls import NoReverseMatch, reverse

from reprocessing.admin.messages import body_view, key_queue_panel, key_table, timeline, uncounted_attempts
from reprocessing.admin.messages.readable_bytes import Readable, readable, short_key, visible
from reprocessing.admin.site import visible_rows
from reprocessing.domain.errors import PayloadUnreadable
from reprocessing.domain.lifecycle import LetterState, ParkedReason
from reprocessing.domain.message import body_format, s3_pointer
from reprocessing.domain.message.body_format import BodyFormat
from reprocessing.domain.message.envelope import Attributes
from reprocessing.domain.message.json_span import json_string_text
from reprocessing.domain.message.json_view import Unreadable
from reprocessing.domain.ordering.placement import read_sort_key
from reprocessing.domain.routing import jmespath_query
from reprocessing.domain.routing.first_match import Action
from reprocessing.domain.routing.jmespath_query import Failed
from reprocessing.domain.sources import celery_task, sns_notification
from reprocessing.domain.sources.celery_envelope import NotShown, unpack_payload
from reprocessing.domain.sources.celery_failure import probable_causes
from reprocessing.domain.sources.celery_task import TaskMessage
from reprocessing.domain.sources.sns_notification import Notification
from reprocessing.domain.targets.target_kind import TargetKind
from reprocessing.models import AuditEntry, Letter
from reprocessing.models.target import Report, Verdict
from reprocessing.store.payloads import answer_texts, message_types, viewed_content
from reprocessing.store.payloads.viewed_content import ViewedContent
from reprocessing.store.routing.routing_decisions import BY_HAND

_SHOWN = 1_000  # max characters of the text in which a producer describes a task's arguments
_LINES = 50  # max rows of each table on the page
_OPEN_LENGTH = 200  # max characters of a public field
_MOODS: Final = {
    LetterState.PARKED: "bad", LetterState.DELIVERED: "good", LetterState.SENDING: "warm", LetterState.AWAITING: "warm",
}  # fmt: skip


def may_see_payloads(user: AbstractBaseUser | AnonymousUser) -> bool:
    """Return whether this person has the permission to see payloads."""
    return isinstance(user, PermissionsMixin) and user.has_perm("reprocessing.view_payload")


def title(letter: Letter, user: AbstractBaseUser | AnonymousUser) -> str:
    """Return the title of the page: the message's type (if unknown, its DLQ), then its ordering key."""
    kind = message_types.type_of(letter, opens=may_see_payloads(user))
    name = visible(kind) or f"Message of {letter.dlq.name}"
    return f"{name} · {short_key(letter.ordering_key)}" if letter.ordering_key else name


def title_of(action: str, letter: Letter, user: AbstractBaseUser | AnonymousUser) -> str:
    """Return the title of a page that acts on a message, such as "Edit invoice.sent, key account-0030".

    `action`: the action in words, such as "Edit".
    """
    kind = message_types.type_of(letter, opens=may_see_payloads(user))
    key = f", key {short_key(letter.ordering_key)}" if letter.ordering_key else ""
    return f"{action} {visible(kind) or f'a message of {letter.dlq.name}'}{key}"


def page(
    letter: Letter, user: AbstractBaseUser | AnonymousUser, shown: ViewedContent | None, *, revealed: bool = False
) -> dict[str, Any]:
    """Return the template context of the page.

    `shown`: the payload; None: this person did not request it. `revealed`: whether the page shows masked values.
    """
    detail_of = partial(answer_texts.detail_for, letter, shown=shown is not None, revealed=revealed)
    tries, edits = timeline.attempts_and_edits(letter, detail_of)
    group = group_address(letter)
    events, older = timeline.history(letter, tries, edits, group)
    return {
        "may_see_payload": may_see_payloads(user),
        "contents": shown and payload_view(letter, shown),
        "opened": None if shown else public_fields(letter),
        "uncounted": uncounted_attempts.uncounted_attempts(letter),
        "mood": _MOODS.get(LetterState(letter.state), ""),
        "detail": visible(detail_of(letter.detail) or ("" if letter.finished_at else letter.blocked_reason)),
        "sequence": letter.sequence and visible(read_sort_key(letter.sequence)),
        "idempotency_key": letter.idempotency_key and visible(letter.idempotency_key),
        "a_person_decided": _a_person_decided(letter),
        "events": events,
        "older_events": older,
        "tried": bool(tries),
        "edits": edits,
        "around": key_table.key_table(letter),
        "lane_panel": key_queue_panel.lane_panel(letter, visible_rows.of_user(user)),
        "group_address": group,
        "copies": _newest(letter.copies.select_related("attempt").order_by("-visible_until")),
        "claims": _newest(letter.claims.select_related("target")),
        "reviews": [(entry, _values_in_words(entry)) for entry in _newest(letter.reviews.order_by("-at"))],
    }


def payload_view(letter: Letter, held: ViewedContent) -> dict[str, Any]:
    """Return a payload as values for the template.

    `revision`: number of the edit; 0: the captured payload. `inner`: the message inside an SNS notification; None: the
    body is not a notification. `task`: the Celery task; None: the body is not a task. `pointer`: where S3 stores the
    body; None: the message itself has the body.
    """
    recognised = body_format.recognise(held.body)
    raw = body_view.raw(held.body, recognised.body_format)
    return {
        "revision": held.revision, "is_masked": held.is_masked, "format": visible(str(recognised)),
        "body": raw.shown, "is_exact": raw.is_exact, "tree": body_view.tree(held.body),
        "inner": _inner(held.body) if recognised.body_format is BodyFormat.SNS else None, "task": _task(letter, held),
        "pointer": s3_pointer.read(held.body, held.attributes),
        "attributes": list(_attributes(held.attributes)),
        "command": None if held.is_masked else body_view.command(letter, held),
        "system": [(visible(name), visible(str(value))) for name, value in sorted(held.system.items())],
    }  # fmt: skip


def public_fields(letter: Letter) -> list[tuple[str, str]]:
    """Return the public fields of the body, with their values. Everybody who may see messages may see these fields.

    The DLQ's setting public_fields says which fields are public. Without this setting, the result is empty.
    """
    if not letter.dlq.public_fields:
        return []
    try:
        document = viewed_content.public_document(letter)
    except PayloadUnreadable as error:
        document = Unreadable(str(error))
    if isinstance(document, Unreadable):
        return [("public fields", f"cannot be read: {document.why}")]
    fields = map(str, letter.dlq.public_fields)
    return [(visible(field), _field(jmespath_query.search(field, document))) for field in fields]


def group_address(letter: Letter) -> str:
    """Return the URL of the message's failure group; empty: the message is in no group."""
    try:
        return reverse("admin:reprocessing_failuregroup_change", args=[letter.group_id]) if letter.group_id else ""
    except NoReverseMatch:
        return ""


def _a_person_decided(letter: Letter) -> bool:
    """Return whether the target of a released message was chosen by a person, so that rules do not decide about it.

    This is so if the person named a target, or released a message that a rule had quarantined.
    """
    if not letter.released_by or letter.reason == ParkedReason.QUARANTINED:
        return False
    return letter.route == Action.QUARANTINE or letter.rulebook_version == BY_HAND


def _values_in_words(entry: AuditEntry) -> str:
    """Return the values of an audit entry in words, if it has none or only the number of an edit; else empty."""
    given = [side for side in (entry.before, entry.after) if side]
    if not given:
        return "-"
    if len(given) > 1 or set(given[0]) != {"revision"}:
        return ""
    return f"edit {given[0]['revision']}" if given[0]["revision"] else "the captured message"


def _field(found: object) -> str:
    match found:
        case None:
            return "nothing"
        case Failed(why):
            return f"cannot be read: {why}"
        case str():
            text = found
        case _:
            text = json.dumps(found, default=str, ensure_ascii=False)
    return visible(text if len(text) <= _OPEN_LENGTH else f"{text[:_OPEN_LENGTH]}…")


def _inner(body: bytes) -> Readable | None:
    found = sns_notification.read(body)
    text = json_string_text(found.fields.get("Message")) if isinstance(found, Notification) else None
    return body_view.cut_to(readable(text.encode()), body_view.INNER_BYTES) if text else None


def _task(letter: Letter, held: ViewedContent) -> dict[str, Any] | None:
    """Return the Celery task in the body as values for the template.

    None: the body is not a task, and the target's consumers are not Celery workers.
    """
    found = celery_task.read(held.body)
    if not isinstance(found, TaskMessage) and (letter.target is None or letter.target.kind != TargetKind.CELERY):
        return None
    queue = letter.source and letter.source.target
    hidden = timedelta(seconds=queue.visibility) if queue else None
    reported = Report.objects.filter(Q(message_id=letter.message_id) | Q(public_id=letter.public_id))
    failed = reported.exclude(verdict=Verdict.DELIVERED).exists()
    why = [visible(cause) for cause in probable_causes(found, held.system, visibility=hidden, reported=failed)]
    if not isinstance(found, TaskMessage):
        return {"fields": (), "payload": None, "closed": found.why, "causes": why}
    raw = unpack_payload(found.envelope)
    shown = None
    if not (found.opaque or isinstance(raw, NotShown)):
        shown = body_view.cut_to(readable(raw), body_view.INNER_BYTES)
    fields = [(name, visible(text)) for name, text in _task_fields(found) if text]
    return {"fields": fields, "payload": shown, "closed": found.opaque, "causes": why}


def _task_fields(found: TaskMessage) -> Iterator[tuple[str, str]]:
    yield "Task", found.task
    yield "Id", found.id
    yield "Retries", str(found.retries)
    yield "Not before (eta)", found.eta
    yield "Not after (expires)", found.expires
    yield "Group", found.group
    if found.opaque:
        yield "Arguments, as written by the producer", found.called_with[:_SHOWN]


def _attributes(attributes: Attributes) -> Iterator[dict[str, Any]]:
    """Yield the attributes for the template. Values are cut so that together they have at most `ATTRIBUTE_BYTES`."""
    left = body_view.ATTRIBUTE_BYTES
    for name, attribute in sorted(attributes.items()):
        value = attribute.value
        shown = readable(value if isinstance(value, bytes) else value.encode(errors="surrogatepass"))
        shown = body_view.cut_to(shown, max(left, 0))
        left -= len(shown.text)
        yield {"name": visible(name), "type": visible(attribute.type), "value": shown}


def _newest(rows: QuerySet[Any]) -> list[Any]:
    return list(rows[:_LINES])
