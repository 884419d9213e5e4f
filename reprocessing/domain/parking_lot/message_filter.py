"""Define the filter of letters for lists, counts, previews, bulk actions and exports."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any, Final, LiteralString

from reprocessing.domain.errors import InvalidFilter
from reprocessing.domain.lifecycle import STATE_NAMES, LetterState, ParkedReason
from reprocessing.domain.parking_lot.field_value import read_field
from reprocessing.domain.search.field_condition import FieldCondition

#: Max characters of a value in a filter, such as a searched text.
LONGEST: Final = 1_024
#: Max letters that a person selects one by one.
MOST_SELECTED: Final = 1_000
#: A text is searched only in the newest 20,000 letters that match the filter's other conditions.
SEARCHED_LETTERS: Final = 20_000
#: Max conditions on search fields.
MAX_CONDITIONS: Final = 3
#: Conditions that may have values of messages; with encryption, they are sealed before a filter is stored.
SECRETS: Final[tuple[LiteralString, ...]] = ("text", "fields", "named", "value")
_LARGEST: Final = 2**63 - 1
_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")  # characters that PostgreSQL cannot store
_NOBODY: Final = "-"  #: the value of `assigned` in a URL that means nobody

#: Old names of conditions, which saved URLs still use.
_FORMER: Final = {
    "dlq__id__exact": "dlq", "reason__exact": "reason", "state__exact": "state", "group__id__exact": "group",
    "rule__id__exact": "rule", "run__id__exact": "run",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class MessageFilter:
    """A filter of letters. A letter matches if all conditions hold. None or empty means no condition.

    Attributes:
        dlq, group, source, target, rule, run: ids.
        states, reasons: the letter must have one of these states, and one of these parking reasons.
        presumed: if true, delivered letters match only if their delivery is presumed.
        key: the ordering key.
        named: a message id, redrive id, ordering key, or value of any search field.
        fields: conditions on search fields, such as "order_id:4711" (domain.search.field_condition).
        sent_after, sent_before: the message was first sent at `sent_after` or later, and before `sent_before`.
        finished_after, finished_before: the same for the time when the letter got its present state.
        assigned: a user's name; an empty text means that nobody is assigned.
        text: a text in the body, as UTF-8.
        selector, value: the field `selector`, such as body:customer.id, has this `value`; None: it has no value.
        dlqs: ids of the DLQs that the person may see; empty: none; None: all. A URL cannot set this condition.
        reveals: whether conditions also match masked values of search fields. A URL cannot set this condition.
        letters: ids of the letters that a person selected, at most `MOST_SELECTED`. A URL cannot set this condition.
    """

    dlq: int | None = None
    states: tuple[str, ...] = (LetterState.PARKED.value,)
    reasons: tuple[str, ...] = ()
    presumed: bool | None = None
    group: int | None = None
    source: int | None = None
    target: int | None = None
    key: str | None = None
    named: str | None = None
    sent_after: datetime | None = None
    sent_before: datetime | None = None
    finished_after: datetime | None = None
    finished_before: datetime | None = None
    assigned: str | None = None
    rule: int | None = None
    run: int | None = None
    text: str | None = None
    fields: tuple[str, ...] = ()
    selector: str | None = None
    value: str | None = None
    dlqs: tuple[int, ...] | None = None
    letters: tuple[int, ...] | None = None
    reveals: bool = False

    @classmethod
    def from_query(cls, query: Mapping[str, Sequence[str]]) -> MessageFilter:
        """Return the filter that a URL's query describes, or raise InvalidFilter. Empty values are ignored."""
        given: dict[str, list[str]] = {}
        for name, values in query.items():
            given.setdefault(_FORMER.get(name, name), []).extend(value.strip() for value in values if value.strip())
        if unknown := sorted(name for name, values in given.items() if values and name not in _READERS):
            raise InvalidFilter(f"There is no filter {unknown[0][:60]!a}. Remove it from the address.")
        read = {_READERS[name][0]: _READERS[name][1](name, values) for name, values in given.items() if values}
        return _consistent(cls(**read))

    def to_query(self) -> list[tuple[str, str]]:
        """Return the filter as names and values of a URL's query, which `from_query` reads."""
        return [pair for name, (its, _) in _READERS.items() for pair in _said(name, getattr(self, its))]

    def stored(self) -> dict[str, Any]:
        """Return the filter as a JSON object that `read` reads, without empty conditions."""
        every = {field.name: _plain(getattr(self, field.name)) for field in fields(self)}
        every |= {"fields": "\n".join(self.fields) or None, "reveals": self.reveals or None}
        return {name: value for name, value in every.items() if value is not None and (value != [] or name in _IDS)}

    def recorded(self) -> dict[str, Any]:
        """Return the filter as a JSON object for the audit log, without values of messages, which may be secret."""
        names = ", ".join(condition.name for condition in self.conditions)
        covers = {
            "text": "(a text in their bodies)", "named": "(an id, key or search value)",
            "fields": f"(values of {names})", "value": "(a value)",
        }  # fmt: skip
        return {name: covers.get(name, value) for name, value in self.stored().items()}

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> MessageFilter:
        """Return the filter of a JSON object that `stored` returned."""
        moments = {name: datetime.fromisoformat(stored[name]) for name in _MOMENTS if stored.get(name)}
        lists = {name: tuple(stored.get(name, ())) for name in ("states", "reasons")}
        lists["fields"] = tuple(stored["fields"].split("\n")) if stored.get("fields") else ()
        ids = {name: None if stored.get(name) is None else tuple(stored[name]) for name in _IDS}
        return cls(**{**stored, **moments, **lists, **ids})

    @property
    def reads_bodies(self) -> bool:
        """Return whether the filter reads payloads, and so finds only letters among the newest `SEARCHED_LETTERS`."""
        return self.text is not None or self.selector is not None

    def without_bodies(self) -> MessageFilter:
        """Return the filter without the conditions that read payloads."""
        return replace(self, text=None, selector=None, value=None)

    @property
    def conditions(self) -> tuple[FieldCondition, ...]:
        """Return the conditions on search fields."""
        return tuple(map(FieldCondition.parse, self.fields))

    @property
    def is_narrow(self) -> bool:
        """Return whether the filter has a condition other than `states`, `dlqs` and `reveals`."""
        return self != MessageFilter(states=self.states, dlqs=self.dlqs, reveals=self.reveals)

    def sentence(self, names: Mapping[str, str] | None = None, *, covered: bool = False, single: bool = False) -> str:
        """Return the filter in words, such as "parked messages of the DLQ orders".

        Args:
            names: what to write in place of an id, by the name of the condition, such as {"dlq": "orders"}.
            covered: whether texts and values that the filter searches for are left out, because they may be secret.
            single: whether the sentence is about one message.
        """
        shown = replace(self, text=None, fields=(), named=None, value=None) if covered else self
        parts = [*shown._parts(names or {}), *(self._covered_parts() if covered else ())]  # noqa: SLF001  its own
        parts += [f"whose {self.selector} {self._value_in_words(covered=covered)}"] if self.selector else []
        words = " or ".join(self.states)
        words = words.replace(LetterState.DELIVERED, STATE_NAMES["presumed"]) if self.presumed else words
        return " ".join([words, "message" if single else "messages", " and ".join(parts)]).strip()

    def _covered_parts(self) -> Iterator[str]:
        if self.named is not None:
            yield "with an id, key or search value"
        if self.text is not None:
            yield "whose body contains a text"
        yield from (f"with a value of {condition.name}" for condition in self.conditions)

    def _value_in_words(self, *, covered: bool) -> str:
        if self.value is None:
            return "has no value"
        return "has a given value" if covered else f'is "{self.value}"'

    def _parts(self, names: Mapping[str, str]) -> Iterator[str]:
        ids = {
            "dlq": "of the DLQ {}", "group": "of the group {}", "source": "that failed in {}",
            "target": "whose target is {}", "rule": "that the rule {} decided about", "run": "of the run {}",
        }  # fmt: skip
        for name, words in ids.items():
            if (value := getattr(self, name)) is not None:
                yield words.format(names.get(name, value))
        if self.letters is not None:
            yield "that were selected"
        if self.reasons:
            yield f"whose reason is {' or '.join(self.reasons).replace('_', ' ')}"
        texts = {
            "with the ordering key": self.key, "with the id, key or search value": self.named,
            "whose body contains": self.text,
        }  # fmt: skip
        for words, text in texts.items():
            if text is not None:
                yield f'{words} "{text}"'
        yield from (f"whose {condition.words}" for condition in self.conditions)
        times = (
            ("first sent at {} or later", self.sent_after), ("first sent before {}", self.sent_before),
            ("in this state since {} or later", self.finished_after),
            ("in this state since before {}", self.finished_before),
        )  # fmt: skip
        for words, moment in times:
            if moment is not None:
                yield words.format(moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"))
        if self.assigned is not None:
            yield f"assigned to {self.assigned or 'nobody'}"


def _consistent(criteria: MessageFilter) -> MessageFilter:
    for after, before, what in (
        (criteria.sent_after, criteria.sent_before, "was first sent"),
        (criteria.finished_after, criteria.finished_before, "was parked"),
    ):
        if after and before and after >= before:
            raise InvalidFilter(f"No message {what} both after {after} and before {before}. Swap the two times.")
    if criteria.value is not None and criteria.selector is None:
        raise InvalidFilter("The filter value needs the filter selector, such as selector=body:customer.id.")
    return criteria


def _one(name: str, values: Sequence[str]) -> str:
    if len(set(values)) > 1:
        raise InvalidFilter(f"The filter {name} was given several times. Give it once.")
    text = values[0]
    if len(text) > LONGEST or _UNSTORABLE.search(text):
        raise InvalidFilter(f"The value of {name} is not a text of at most {LONGEST:,} characters.")
    return text


def _id(name: str, values: Sequence[str]) -> int:
    text = _one(name, values)
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(_LARGEST)) and 0 < int(text) <= _LARGEST):
        raise InvalidFilter(f"The filter {name} takes the number of an id, not {text[:60]!a}.")
    return int(text)


def _moment(name: str, values: Sequence[str]) -> datetime:
    text = _one(name, values)
    try:
        value = datetime.fromisoformat(text)
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise InvalidFilter(
            f"The filter {name} takes a time such as 2026-03-01T08:00 (UTC), not {text[:60]!a}."
        ) from None


def _fields(name: str, values: Sequence[str]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(str(FieldCondition.parse(value)) for value in values if _one(name, [value])))
    if len(found) > MAX_CONDITIONS:
        raise InvalidFilter(f"A filter has at most {MAX_CONDITIONS} conditions on search fields. Leave out some.")
    return found


def _selector(name: str, values: Sequence[str]) -> str:
    return str(read_field(_one(name, values)))


def _assigned(name: str, values: Sequence[str]) -> str:
    text = _one(name, values)
    return "" if text == _NOBODY else text


def _among(known: Sequence[str]) -> Callable[[str, Sequence[str]], tuple[str, ...]]:
    def read(name: str, values: Sequence[str]) -> tuple[str, ...]:
        for value in values:
            if value not in known:
                raise InvalidFilter(f"The filter {name} has no value {value[:60]!a}. It takes: {', '.join(known)}.")
        return tuple(value for value in known if value in values)

    return read


_IDS: Final = ("dlqs", "letters")  # conditions that are lists of ids; an empty list matches nothing
_MOMENTS: Final = ("sent_after", "sent_before", "finished_after", "finished_before")
#: Names of conditions in URLs, each with the attribute of `MessageFilter` and the parser.
_READERS: Final[Mapping[str, tuple[str, Callable[[str, Sequence[str]], Any]]]] = {
    "dlq": ("dlq", _id), "state": ("states", _among([state.value for state in LetterState])),
    "reason": ("reasons", _among([reason.value for reason in ParkedReason])), "group": ("group", _id),
    "presumed": ("presumed", lambda name, values: bool(_among(["1"])(name, values))),
    "source": ("source", _id), "target": ("target", _id), "key": ("key", _one), "q": ("named", _one),
    "sent_after": ("sent_after", _moment), "sent_before": ("sent_before", _moment),
    "parked_after": ("finished_after", _moment), "parked_before": ("finished_before", _moment),
    "assigned": ("assigned", _assigned), "rule": ("rule", _id), "run": ("run", _id), "text": ("text", _one),
    "field": ("fields", _fields), "selector": ("selector", _selector), "value": ("value", _one),
}  # fmt: skip


def _said(name: str, value: object) -> Iterator[tuple[str, str]]:
    match value:
        case None:
            return
        case tuple():
            yield from ((name, member) for member in value)
        case datetime():
            yield name, value.astimezone(UTC).isoformat()
        case "" if name == "assigned":
            yield name, _NOBODY
        case _:
            yield name, "1" if value is True else str(value)


def _plain(value: object) -> object:
    match value:
        case datetime():
            return value.isoformat()
        case tuple():
            return list(value)
        case _:
            return value
