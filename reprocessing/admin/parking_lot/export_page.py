"""Export messages that match a filter: a page asks for the reason, then the browser downloads a file."""

from __future__ import annotations

import base64
import csv
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse

from reprocessing.admin.messages.message_page import may_see_payloads
from reprocessing.admin.messages.show_payload import may_reveal
from reprocessing.admin.parking_lot import message_list
from reprocessing.admin.parking_lot.confirm_forms import ExportForm, filter_of_query
from reprocessing.admin.site.session_end import post_only
from reprocessing.domain.errors import InvalidFilter
from reprocessing.domain.message.envelope import unpack_attributes
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.domain.payloads import masking
from reprocessing.domain.payloads.mask_rules import MaskRules
from reprocessing.models import AuditAct, AuditEntry, DeadLetterQueue
from reprocessing.store.ordering import lanes
from reprocessing.store.parking_lot import export, filtered_letters
from reprocessing.store.parking_lot.export import ExportBound, ExportedLetter
from reprocessing.store.payloads import viewed_content
from reprocessing.store.search import filter_conditions

#: Characters that make a spreadsheet evaluate a cell as a formula, if the cell begins with them.
_FORMULA: Final = (
    "=",
    "+",
    "-",
    "@",
    "\t",
    "\r",
    "\n",
    "\uff1d",
    "\uff0b",
    "\uff0d",
    "\uff20",
)  # the last four are full-width forms of =, +, - and @
_FIELDS: Final = (
    "redrive_id", "message_id", "dlq", "source", "target", "state", "reason", "ordering_key", "idempotency_key",
    "attempts", "size", "first_sent_at", "captured_at", "finished_at", "expires_at", "assigned_to", "group", "edited",
)  # fmt: skip
_PAYLOAD: Final = ("body_encoding", "body", "attributes")
_ORIGINAL: Final = "original"


@dataclass(frozen=True, slots=True)
class _Parts:
    """What an export includes.

    Attributes:
        bodies: the payloads as they would be sent.
        originals: for edited messages, also the payloads as captured.
        revealed: the values of masked fields. Without `revealed`, they are exported as [masked].
    """

    bodies: bool
    originals: bool
    revealed: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return (*(_PAYLOAD if self.bodies else ()), *((_ORIGINAL,) if self.originals else ()))


@post_only
def page(request: HttpRequest) -> HttpResponseBase:
    """Show the form of an export; after a valid form is submitted, return the file."""
    if not (request.user.has_perms(("reprocessing.export_letter", "reprocessing.view_parkedletter"))):
        raise PermissionDenied
    form = (
        ExportForm(request.POST)
        if "reason" in request.POST
        else ExportForm(initial={"query": request.POST.get("query", "")})
    )
    if not may_see_payloads(request.user):
        for name in ("bodies", "originals"):
            form.fields[name].disabled = True
            form.fields[name].help_text = "You may not see payloads, so bodies are not exported."
    if not may_reveal(request):
        form.fields["revealed"].disabled = True
        form.fields["revealed"].help_text = "You may not reveal masked values, so they are exported masked."
    if not form.is_bound or not form.is_valid():
        return _asks(request, form)
    try:
        criteria = message_list.allowed(form.cleaned_data["query"], request)
        _insist_on_rows(request, criteria)
        filter_conditions.require_exhaustive(criteria)
    except InvalidFilter as error:
        form.add_error("query", str(error))
        return _asks(request, form)
    try:
        return _file(request, criteria, form.cleaned_data)
    except IntegrityError:  # the DLQ or the failure group was removed after the check
        form.add_error("query", "The DLQ or failure group of this filter was removed. Choose another one.")
        return _asks(request, form)


def _insist_on_rows(request: HttpRequest, criteria: MessageFilter) -> None:
    """Check that the DLQ and the failure group of the filter exist, because the audit entry refers to them.

    Raises:
        InvalidFilter: the DLQ or the failure group was removed.
    """
    known = message_list.names_of(request, criteria)
    for name in ("dlq", "group"):
        if (value := getattr(criteria, name)) is not None and name not in known:
            raise InvalidFilter(f"There is no {name} {value} any more, so there is nothing to export.")


def _asks(request: HttpRequest, form: ExportForm) -> HttpResponse:
    refusal, criteria, count = "", MessageFilter(), 0
    try:
        criteria = message_list.allowed(filter_of_query(str(form["query"].value() or "")), request)
        count = filtered_letters.count_letters(criteria)
    except InvalidFilter as error:
        refusal = str(error)
    context = {
        **admin.site.each_context(request),
        "title": "Export messages",
        "form": form,
        "refusal": refusal,
        "sentence": criteria.sentence(message_list.names_of(request, criteria), single=count == 1),
        "counted": filtered_letters.counted(count),
        "back": message_list.address_of(criteria),
    }
    return TemplateResponse(request, "reprocessing/admin/export.html", context)


def _file(request: HttpRequest, criteria: MessageFilter, asked: dict[str, Any]) -> HttpResponseBase:
    """Record the export in the audit log, then return the file."""
    kind, parts = str(asked["kind"]), _Parts(asked["bodies"], asked["originals"], asked["revealed"])
    with transaction.atomic():
        bound = export.current_bound()
        AuditEntry.objects.create(
            act=AuditAct.EXPORTED, dlq_id=criteria.dlq, group_id=criteria.group, by=request.user.get_username(),
            reason=asked["reason"], at=bound.asked_at,
            after={"filter": criteria.recorded(), "as": kind, **asdict(parts)},
        )  # fmt: skip
    lines = _jsonl(criteria, bound, parts) if kind == "jsonl" else _csv(criteria, bound, parts)
    name = f"letters-{lanes.database_now():%Y%m%d-%H%M%S}.{kind}"
    return StreamingHttpResponse(
        lines,
        content_type="application/x-ndjson" if kind == "jsonl" else "text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"},
    )


def _jsonl(criteria: MessageFilter, bound: ExportBound, parts: _Parts) -> Iterator[str]:
    rules = _rules(parts)
    for letter in export.export_letters(criteria, bound, bodies=parts.bodies, originals=parts.originals):
        yield json.dumps(_values(letter, parts, rules.get(letter.dlq, MaskRules()))) + "\n"


class _Echo:
    """A file for csv.writer. `write` returns the text instead of storing it, so that each line can be streamed."""

    def write(self, text: str) -> str:
        return text


def _csv(criteria: MessageFilter, bound: ExportBound, parts: _Parts) -> Iterator[str]:
    writer = csv.writer(_Echo(), lineterminator="\r\n")
    rules = _rules(parts)
    yield str(writer.writerow([*_FIELDS, *parts.columns]))
    for letter in export.export_letters(criteria, bound, bodies=parts.bodies, originals=parts.originals):
        values = _values(letter, parts, rules.get(letter.dlq, MaskRules()))
        yield str(writer.writerow([_cell(value) for value in values.values()]))


def _rules(parts: _Parts) -> dict[str, MaskRules]:
    """Return the masking rules of each DLQ, by the name of the DLQ; empty: the export does not mask values."""
    dlqs = DeadLetterQueue.objects.all() if parts.bodies and not parts.revealed else ()
    return {dlq.name: viewed_content.rules_of(dlq) for dlq in dlqs}


def _values(letter: ExportedLetter, parts: _Parts, rules: MaskRules) -> dict[str, Any]:
    """Return the exported values of a message by column name, in the order of the columns."""
    values = {name: _plain(getattr(letter, name)) for name in _FIELDS}
    if letter.unreadable:
        unreadable = {"body_encoding": "unreadable", "body": letter.unreadable, "attributes": {}}
        return values | unreadable | ({_ORIGINAL: None} if parts.originals else {})
    if parts.bodies:
        values |= _payload(letter.body, letter.attributes, rules)
    if parts.originals:
        is_edited = letter.original_body is not None
        original = _payload(letter.original_body, letter.original_attributes, rules) if is_edited else None
        values |= {_ORIGINAL: original}
    return values


def _payload(content: bytes | None, packed: bytes | None, rules: MaskRules) -> dict[str, Any]:
    shown = masking.mask(content or b"", unpack_attributes(packed) if packed is not None else {}, rules)
    encoding, body = _text(shown.body)
    attributes = {
        name: {"type": attribute.type, "value": _value(attribute.value)}
        for name, attribute in sorted(shown.attributes.items())
    }
    return {"body_encoding": encoding, "body": body, "attributes": attributes}


def _text(content: bytes) -> tuple[str, str]:
    try:
        return "text", content.decode()
    except UnicodeDecodeError:
        return "base64", base64.b64encode(content).decode()


def _value(value: str | bytes) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return value if isinstance(value, str | int | bool | None) else str(value)


def _cell(value: object) -> str:
    """Return a value as the text of a CSV cell.

    A text that a spreadsheet could take for a formula gets an apostrophe in front.
    """
    text = json.dumps(value) if isinstance(value, dict) else "" if value is None else str(value)
    return f"'{text}" if text.lstrip(" ").startswith(_FORMULA) else text
