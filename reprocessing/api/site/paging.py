"""Pages of lists. `next` is the value of `after` for the next page."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Annotated, Final, TypeVar

from django.db.models import Model, QuerySet
from pydantic import Field

from reprocessing.api.site.problems import Problem

Row = TypeVar("Row", bound=Model)
#: Parameters of a list.
Limit = Annotated[int, Field(ge=1, le=200, description="max items of the page")]
After = Annotated[
    str, Field(pattern="^[-a-zA-Z0-9_]*$", max_length=100, description="`next` of the page before; empty: first page")
]
Next = Annotated[str | None, Field(description="`after` of the next page; null: this is the last page")]
DEFAULT: Final = 50

_PLACE: Final = re.compile(r"(\d{1,17})-(\d{1,18})", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_ID_DIGITS: Final = 18


def page_by_name(
    rows: QuerySet[Row], *, after: str, limit: int, name: Callable[[Row], str]
) -> tuple[list[Row], str | None]:
    """Return the first rows by name after the name `after`, and the `after` of the next page."""
    found = list(rows.filter(name__gt=after).order_by("name")[: limit + 1])
    return found[:limit], name(found[limit - 1]) if len(found) > limit else None


def page_by_id(rows: QuerySet[Row], *, after: str, limit: int) -> tuple[list[Row], str | None]:
    """Return the newest rows with ids below `after`, and the `after` of the next page."""
    if after and not (after.isdecimal() and len(after) <= _ID_DIGITS):
        raise bad_cursor()
    found = list((rows.filter(pk__lt=int(after)) if after else rows).order_by("-pk")[: limit + 1])
    return found[:limit], str(found[limit - 1].pk) if len(found) > limit else None


def read_place(after: str) -> tuple[datetime, int] | None:
    """Return the time and the id of the last message of the page before; None: the first page."""
    if not after:
        return None
    found = _PLACE.fullmatch(after)
    if found is None:
        raise bad_cursor()
    return _EPOCH + int(found[1]) * _MICROSECOND, int(found[2])


def write_place(at: datetime, key: int) -> str:
    """Return a place that `read_place` reads."""
    return f"{(at - _EPOCH) // _MICROSECOND}-{key}"


def bad_cursor() -> Problem:
    """Return the refusal of an `after` that no page had as `next`."""
    return Problem(
        HTTPStatus.UNPROCESSABLE_ENTITY, "`after` is not valid. Send `next` of the page before, or leave it out."
    )
