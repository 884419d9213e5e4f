"""Read one condition on a search field, such as `order_id:4711`, or `order_id:47*` for values that begin with 47."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from reprocessing.domain.errors import InvalidFilter
from reprocessing.domain.search.search_fields import RESERVED, is_name, normal_value

#: Fewest characters before the `*` of a prefix.
SHORTEST_PREFIX: Final = 2
_STAR, _ESCAPED = "*", r"\*"


@dataclass(frozen=True, slots=True)
class FieldCondition:
    """A condition on a search field: it equals `value`, or, if `is_prefix` is true, begins with `value`."""

    name: str
    value: str
    is_prefix: bool = False

    def __str__(self) -> str:
        """Return the text that `parse` reads. A `*` that is the last character of the value itself is escaped."""
        if self.is_prefix:
            return f"{self.name}:{self.value}{_STAR}"
        literal = self.value.removesuffix(_STAR) + _ESCAPED if self.value.endswith(_STAR) else self.value
        return f"{self.name}:{literal}"

    @property
    def words(self) -> str:
        """Return the condition in words, such as "order_id is 4711"."""
        return f"{self.name} {'begins with' if self.is_prefix else 'is'} {self.value}"

    @classmethod
    def parse(cls, text: str) -> FieldCondition:
        """Return the condition that a text such as `order_id:4711` describes, or raise InvalidFilter."""
        name, colon, value = text.partition(":")
        if not colon or not is_name(name) or name in RESERVED:
            raise InvalidFilter(f"{text[:60]!a} is no condition on a search field. Write one such as order_id:4711.")
        if value.endswith(_ESCAPED):
            return _checked(cls(name, value.removesuffix(_ESCAPED) + _STAR))
        return _checked(cls(name, value.removesuffix(_STAR), is_prefix=value.endswith(_STAR)))


def _checked(condition: FieldCondition) -> FieldCondition:
    name, value = condition.name, normal_value(condition.value)
    if not value:
        raise InvalidFilter(f"{name} has no value. Write {name}:VALUE, such as {name}:4711.")
    if "\n" in value:
        raise InvalidFilter(f"The value of {name} has several lines. Search for the first line: {name}:LINE*.")
    if condition.is_prefix and len(value) < SHORTEST_PREFIX:
        raise InvalidFilter(f"{name}:{value}* is too short. Write at least {SHORTEST_PREFIX} characters before the *.")
    return FieldCondition(name, value, condition.is_prefix)
