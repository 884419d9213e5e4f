"""Divide the API's lists into pages. The value `next` of a page is the parameter `after` of the next page."""

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
#: Query parameters of a list: `limit` and `after`.
Limit = Annotated[int, Field(ge=1, le=200, description="max items of the page")]
After = Annotated[
    str, Field(pattern="^[-a-zA-Z0-9_]*$", max_length=100, description="`next` of the page before; empty: first page")
]
Next = Annotated[str | None, Field(description="`after` of the next page; null: this is the last page")]
DEFAULT: Final = 50  #: items of a page, if `limit` is not given

_PLACE: Final = re.compile(r"(\d{1,17})-(\d{1,18})", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_ID_DIGITS: Final = 18


def page_by_name(
    rows: QuerySet[Row], *, after: str, limit: int, name: Callable[[Row], str]
) -> tuple[list[Row], str | None]:
    """Return a page of rows in the order of their names, and `after` of the next page (None: there is no next page).

    `after`: the page begins behind this name. `name`: returns the name of a row.
    """
    found = list(rows.filter(name__gt=after).order_by("name")[: limit + 1])
    return found[:limit], name(found[limit - 1]) if len(found) > limit else None


def page_by_id(rows: QuerySet[Row], *, after: str, limit: int) -> tuple[list[Row], str | None]:
    """Return a page of rows, the newest first, and `after` of the next page (None: there is no next page).

    The page has the newest rows whose ids are below `after`.

    Raises:
        Problem: `after` is not an id.
    """
    if after and not (after.isdecimal() and len(after) <= _ID_DIGITS):
        raise bad_cursor()
    found = list((rows.filter(pk__lt=int(after)) if after else rows).order_by("-pk")[: limit + 1])
    return found[:limit], str(found[limit - 1].pk) if len(found) > limit else None


def read_cursor(after: str) -> tuple[datetime, int] | None:
    """Return the time and the letter id that `write_cursor` wrote into `after`; None if `after` is empty (first page).

    Raises:
        Problem: `after` is not valid.
    """
    if not after:
        return None
    found = _PLACE.fullmatch(after)
    if found is None:
        raise bad_cursor()
    return _EPOCH + int(found[1]) * _MICROSECOND, int(found[2])


def write_cursor(at: datetime, key: int) -> str:
    """Return the parameter `after` for the next page: the time and letter id of this page's last message, as text."""
    return f"{(at - _EPOCH) // _MICROSECOND}-{key}"


def bad_cursor() -> Problem:
    """Return the error (422) for a parameter `after` that is not valid."""
    return Problem(
        HTTPStatus.UNPROCESSABLE_ENTITY, "`after` is not valid. Send `next` of the page before, or leave it out."
    )
