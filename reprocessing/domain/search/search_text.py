"""Read the text of the admin's search box, such as `dlq:orders order_id:4711`, and write such a text.

A word without a colon is an id, an ordering key or the value of any search field. `name:value` is a condition. Text in
quotes is searched in bodies.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from reprocessing.domain.errors import InvalidFilter
from reprocessing.domain.lifecycle import STATE_NAMES, LetterState, ParkedReason
from reprocessing.domain.search.field_condition import FieldCondition
from reprocessing.domain.search.search_fields import is_name

#: Max characters of a search.
LONGEST: Final = 1_024
_PART: Final = re.compile(
    r'\s*(?:(?P<name>[A-Za-z]\w*):)?(?:"(?P<quoted>(?:[^"\\]|\\.)*)"(?P<star>\*)?|(?P<plain>[^\s"]\S*)|(?=\s|$))'
)
_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")
_BARE: Final = re.compile(r'[^\s":\\]+')
_WORDS: Final = re.compile(r'[^\s":\\]+(?: [^\s":\\]+)*')
#: States by the names that pages show, with a hyphen instead of a space, such as "awaiting-outcome".
_STATES: Final = {STATE_NAMES.get(state.value, state.value).replace(" ", "-"): state.value for state in LetterState}
#: The name of the state "delivered" if the delivery is only presumed.
_PRESUMED: Final = STATE_NAMES["presumed"].replace(" ", "-")
_EXAMPLES: Final = "Write a message id, an ordering key, or FIELD:VALUE, such as state:parked."


@dataclass(frozen=True, slots=True)
class SearchText:
    """The parts of a search.

    Attributes:
        named: a message id, an ordering key, or the value of any search field.
        key: an ordering key.
        text: a text in bodies.
        fields: conditions on search fields.
        dlq: the name of a DLQ.
        presumed: if true, delivered messages match only if their delivery is presumed.
        group: the number of a failure group.
    """

    named: str | None = None
    key: str | None = None
    text: str | None = None
    fields: tuple[FieldCondition, ...] = ()
    dlq: str | None = None
    states: tuple[str, ...] = ()
    presumed: bool = False
    reasons: tuple[str, ...] = ()
    group: int | None = None


def read_search(text: str) -> SearchText:
    """Return what a text of the search box means. Raise InvalidFilter, which says what to write."""
    if len(text) > LONGEST or _UNSTORABLE.search(text):
        raise InvalidFilter(f"A search is a text of at most {LONGEST:,} characters. {_EXAMPLES}")
    found, words, place, ends = SearchText(), list[str](), 0, len(text.rstrip())
    while place < ends:
        part = _PART.match(text, place)
        if part is None or part.end() == place:
            raise InvalidFilter('A quotation mark has no partner. Write the text between two: "card declined".')
        place = part.end()
        if part["name"] is not None:
            found = _with_condition(found, part["name"].lower(), part)
        elif part["quoted"] is not None:
            found = _once(found, "text", _unquoted(part["quoted"]))
        else:
            words.append(part["plain"])
    return _once(found, "named", " ".join(words)) if words else found


def write_search(search: SearchText) -> str:
    """Return the text that `read_search` reads as this search."""
    parts = [f"dlq:{_quoted(search.dlq)}"] if search.dlq is not None else []
    parts += [f"state:{_name(state, search)}" for state in _STATES.values() if state in search.states]
    parts += [f"reason:{reason}" for reason in search.reasons]
    parts += [f"group:{search.group}"] if search.group is not None else []
    parts += [_written(condition) for condition in search.fields]
    parts += [f"key:{_quoted(search.key)}"] if search.key is not None else []
    if search.named is not None:
        parts.append(search.named if _WORDS.fullmatch(search.named) else f"id:{_quoted(search.named)}")
    parts += [f'"{_escaped(search.text)}"'] if search.text is not None else []
    return " ".join(parts)


def _with_condition(found: SearchText, name: str, part: re.Match[str]) -> SearchText:
    quoted = part["quoted"]
    value = _unquoted(quoted) if quoted is not None else part["plain"] or ""
    if not value.strip():
        raise InvalidFilter(f"{name}: has no value. Write {name}:VALUE, without a space after the colon.")
    match name:
        case "id":
            return _once(found, "named", value)
        case "key" | "text" | "dlq":
            return _once(found, name, value)
        case "state":
            return _with_state(found, value)
        case "reason":
            reasons = {reason.value: reason.value for reason in ParkedReason}
            return replace(found, reasons=(*found.reasons, _known(name, value.lower(), reasons)))
        case "group":
            return _once(found, "group", _number(value))
        case _:
            if quoted is not None:  # a * inside the quotation marks is part of the value; a * behind means a prefix
                value = value + "*" if part["star"] else str(FieldCondition("x", value)).removeprefix("x:")
            return replace(found, fields=(*found.fields, _field(name, value)))


def _with_state(found: SearchText, value: str) -> SearchText:
    """Return the search with one more state. People write the state as pages show it, or only its first word.

    The state's name in the code is also accepted. "delivered" includes presumed deliveries. "presumed delivered" does
    not include other deliveries.
    """
    names = list(_STATES)
    names.insert(names.index(LetterState.DELIVERED.value) + 1, _PRESUMED)
    known = {name: name for name in names}
    short = {name.partition("-")[0]: name for name in names} | {state: name for name, state in _STATES.items()}
    typed = "-".join(re.split(r"[\s_-]+", value.strip().lower()))
    name = _known("state", short.get(typed, typed), known)
    is_presumed, is_first = name == _PRESUMED, LetterState.DELIVERED not in found.states
    state = _STATES.get(name, LetterState.DELIVERED.value)
    if state == LetterState.DELIVERED:
        found = replace(found, presumed=is_presumed and (is_first or found.presumed))
    return replace(found, states=tuple(dict.fromkeys((*found.states, state))))


def _name(state: str, search: SearchText) -> str:
    if state == LetterState.DELIVERED and search.presumed:
        return _PRESUMED
    return STATE_NAMES.get(state, state).replace(" ", "-")


def _field(name: str, value: str) -> FieldCondition:
    if not is_name(name):
        raise InvalidFilter(f'{name} is not a search field. To search for the text, quote it: "{name}:{value}".')
    return FieldCondition.parse(f"{name}:{value}")


def _once(found: SearchText, name: str, value: Any) -> SearchText:  # noqa: ANN401  the field's own type
    if getattr(found, name) is not None:
        what = {"named": "one id or key", "text": "one text"}.get(name, f"one {name}")
        raise InvalidFilter(f"A search has {what}. Leave out the others, or quote a text of several words.")
    if isinstance(value, str) and not value.strip():
        raise InvalidFilter(f"The text between the quotation marks is empty. {_EXAMPLES}")
    return replace(found, **{name: value})


def _known(name: str, value: str, known: dict[str, str]) -> str:
    if value in known.values():
        return value
    if value not in known:
        raise InvalidFilter(f"There is no {name} {value[:60]!a}. Write {name}: and one of {', '.join(known)}.")
    return known[value]


def _number(value: str) -> int:
    if not (value.isascii() and value.isdecimal() and len(value) <= 18):  # noqa: PLR2004  fits into a bigint
        raise InvalidFilter(f"group: takes the number of a failure group, not {value[:60]!a}. Write group:17.")
    return int(value)


def _written(condition: FieldCondition) -> str:
    if condition.is_prefix:
        return f"{condition.name}:{_quoted(condition.value)}*"
    return f"{condition.name}:{_quoted(condition.value)}"


def _quoted(value: str) -> str:
    return value if _BARE.fullmatch(value) and not value.endswith("*") else f'"{_escaped(value)}"'


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"")


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


def named_conditions(fields: Sequence[FieldCondition]) -> tuple[str, ...]:
    """Return the conditions as texts for a message filter."""
    return tuple(map(str, fields))
