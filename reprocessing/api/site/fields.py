"""Types of fields, and base classes, of the API's requests and answers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    WithJsonSchema,
)

#: Max characters of a reason, as in the admin.
LONGEST_REASON: Final = 2_000
_MOST_DIGITS: Final = 2**31 - 1


def without_zero(text: str) -> str:
    """Return the text, if it has no zero byte.

    Raises:
        ValueError: the text has a zero byte, which PostgreSQL cannot store.
    """
    if "\0" in text:
        raise ValueError("a zero byte cannot be stored")
    return text


def _storable(text: str) -> str:
    without_zero(text)
    if not text.strip():
        raise ValueError("it is empty")
    return text.strip()


def _moment(value: object) -> datetime:
    if isinstance(value, datetime):
        return value
    try:
        found = datetime.fromisoformat(str(value)) if isinstance(value, str) and "T" in value else None
        if found is not None and found.tzinfo is not None:
            return found.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise ValueError("it is not a time with an offset, such as 2026-03-01T08:00:00Z")


#: A name of a DLQ, run, rule or token.
SLUG: Final = "^[-a-zA-Z0-9_]+$"
Name = Annotated[str, Field(min_length=1, max_length=100, pattern=SLUG)]
#: An ordering key. It is kept as it is, because two keys may differ only in a space.
Key = Annotated[str, Field(min_length=1, max_length=1_024), AfterValidator(without_zero)]
Text = Annotated[str, Field(min_length=1, max_length=1_024), AfterValidator(_storable)]
Reason = Annotated[
    str, Field(min_length=1, max_length=LONGEST_REASON, description="why; recorded in the audit log. No payloads."),
    AfterValidator(_storable),
]  # fmt: skip
Moment = Annotated[datetime, BeforeValidator(_moment), WithJsonSchema({"type": "string", "format": "date-time"})]
Count = Annotated[StrictInt, Field(ge=1, le=_MOST_DIGITS)]
Yes = StrictBool


class Request(BaseModel):
    """The body or query of a request. A request with an unknown field is refused."""

    model_config = ConfigDict(extra="forbid")


class Change(Request):
    """The body of a request that may change something. Without `confirm`, it is a dry run."""

    reason: Reason
    confirm: Yes = Field(default=False, description="false: a dry run, which changes nothing")


class Answer(BaseModel):
    """The JSON body of an answer."""


class ChangeAnswer(Answer):
    """The answer to a request that may change something: what it changed, or in a dry run, would change."""

    dry_run: bool = Field(description="whether this was a dry run, which changes nothing")
    changed: bool = Field(description="whether this request changed something")
    says: list[str] = Field(description="what happened or would happen, in sentences")
