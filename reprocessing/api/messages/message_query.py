"""Read a filter of messages from a request.

The filter has the fields of the admin's parking lot, but takes names of DLQs, runs and rules where the admin takes ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Any, Final

from django.db.models import Manager
from pydantic import AfterValidator, Field

from reprocessing.api.site.caller import Caller
from reprocessing.api.site.fields import Name, Request
from reprocessing.api.site.problems import Problem
from reprocessing.domain.api.scopes import Scope
from reprocessing.domain.errors import InvalidFilter
from reprocessing.domain.lifecycle import LetterState, ParkedReason
from reprocessing.domain.parking_lot.message_filter import LONGEST, MAX_CONDITIONS, MessageFilter
from reprocessing.models import DeadLetterQueue, Rule, Run
from reprocessing.store.payloads import viewed_content

_Id = Annotated[int, Field(ge=1, le=2**63 - 1)]


def _not_blank(text: str) -> str:
    if not text.strip():  # the admin's form ignores an empty value, so the filter would match everything
        raise ValueError("it is empty")
    return text


_Words = Annotated[str, Field(min_length=1, max_length=LONGEST), AfterValidator(_not_blank)]


class MessageQuery(Request):
    """A filter of messages. A message matches if it meets all given conditions."""

    dlq: Name | None = Field(None, description="name of the DLQ")
    state: list[LetterState] = Field([], description="in any of these states (default: parked)", max_length=8)
    reason: list[ParkedReason] = Field([], description="parked for any of these reasons", max_length=50)
    group: _Id | None = Field(None, description="id of the failure group")
    source: _Id | None = Field(None, description="id of the source queue")
    target: _Id | None = Field(None, description="id of the target")
    key: _Words | None = Field(None, description="ordering key")
    q: _Words | None = Field(None, description="message id, redrive id, ordering key, or value of any search field")
    field: list[_Words] = Field(
        [], description="NAME:VALUE of a search field, or NAME:VALUE* for values that begin with VALUE; all must match",
        max_length=MAX_CONDITIONS,
    )  # fmt: skip
    sent_after: _Words | None = Field(None, description="first sent at this time or later")
    sent_before: _Words | None = Field(None, description="first sent before this time")
    parked_after: _Words | None = Field(
        None, description="parked, or got a final state such as delivered, at this time or later"
    )
    parked_before: _Words | None = Field(
        None, description="parked, or got a final state such as delivered, before this time"
    )
    assigned: _Words | None = Field(None, description="assigned to the user with this name; -: assigned to nobody")
    rule: Name | None = Field(None, description="name of the rule that decided about the message")
    run: Name | None = Field(None, description="id of the run")
    text: _Words | None = Field(None, description="text that the body contains; needs the scope messages:bodies")


_NAMED: Final[Mapping[str, tuple[Manager[Any], str]]] = {
    "dlq": (DeadLetterQueue.objects, "DLQ"), "run": (Run.objects, "run"), "rule": (Rule.objects, "rule"),
}  # fmt: skip


def read_filter(query: MessageQuery, caller: Caller) -> MessageFilter:
    """Return the filter of the query, limited to messages of the DLQs that the token sees.

    Raises:
        InvalidFilter: a value is not valid, or `text` would search messages that may have masked values: the result
            would tell these values.
        Problem: the token sees no DLQ, run or rule of this name, or `text` is given without the scope messages:bodies.
    """
    if query.text is not None:
        caller.require(Scope.MESSAGES_BODIES)
    given = {name: value for name, value in query.model_dump().items() if value not in (None, [])}
    for name, (every, what) in _NAMED.items():
        if name in given:
            given[name] = str(_id(caller, every, what, given[name]))
    lists = {name: value if isinstance(value, list) else [str(value)] for name, value in given.items()}
    found = MessageFilter.from_query(lists)
    if found.text is not None and viewed_content.masks_fields(found.dlq):
        raise InvalidFilter("A text search could reveal masked values of these messages. Omit `text`.")
    return replace(found, dlqs=caller.seen.ids, key=query.key, text=query.text)  # not stripped: spaces count


def _id(caller: Caller, every: Manager[Any], what: str, name: str) -> int:
    found = caller.rows(every).filter(name=name).values_list("pk", flat=True).first()
    if found is None:
        why = f"The filter names a {what} that does not exist, or that this token does not see. Correct its name."
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, why)
    return int(found)
