"""Decide which values of a message are masked: fields by name, and parts of the body by JMESPath expressions.

A name, such as email, masks every field and attribute with this name, at any depth. Upper and lower case, "-" and "_"
do not matter. Any other text is a JMESPath expression for the body, such as customer.cards[*].number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import jmespath

from reprocessing.domain.message.json_view import JsonValue
from reprocessing.domain.routing import jmespath_query

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
_IGNORED: Final = str.maketrans("", "", "-_. ")
#: Types of JMESPath nodes that only select parts of the body. Nodes of other types compute new values.
_SELECTS: Final = frozenset({
    "field", "subexpression", "index_expression", "index", "slice", "projection", "value_projection", "flatten",
    "filter_projection", "identity", "current",
})  # fmt: skip
#: Types of JMESPath nodes that select many values.
_MANY: Final = frozenset({"projection", "value_projection", "filter_projection", "flatten"})

#: The place of a value: the id of the object or list around it, and the value's name or index there.
Place = tuple[int, str | int]


@dataclass(frozen=True, slots=True)
class MaskRules:
    """The mask rules for the messages of one DLQ: names of fields, and JMESPath expressions (`paths`)."""

    names: frozenset[str] = frozenset()
    paths: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.names or self.paths)

    def has_name(self, name: str) -> bool:
        """Return whether the values of fields with this name are masked."""
        return plain_name(name) in self.names

    def places(self, document: JsonValue) -> frozenset[Place]:
        """Return the places of all values that the expressions mask in a document, without the whole document."""
        return frozenset(
            place for path in self.paths for _, place in _select(_tree(path), (document, None)) if place is not None
        )

    def select_whole(self, document: JsonValue) -> bool:
        """Return whether an expression masks the document as a whole."""
        return any(place is None for path in self.paths for _, place in _select(_tree(path), (document, None)))


@lru_cache(maxsize=1_024)
def mask_rules(entries: tuple[str, ...]) -> MaskRules:
    """Return the mask rules of valid entries: names of fields, and JMESPath expressions."""
    names = frozenset(plain_name(entry) for entry in entries if _NAME.fullmatch(entry))
    return MaskRules(names, tuple(entry for entry in entries if not _NAME.fullmatch(entry)))


def mask_problems(entries: Iterable[str]) -> list[str]:
    """Return what is wrong with the entries of `masked_fields`, one sentence for each entry that is not valid."""
    return [problem for entry in entries if (problem := mask_problem(entry))]


def mask_problem(entry: str) -> str:
    """Return why an entry is neither a field's name nor a usable expression; empty: the entry is valid."""
    if _NAME.fullmatch(entry):
        return ""
    if why := jmespath_query.problem(entry, as_in="body:customer.email"):
        return f'"{entry[:60]}" is neither the name of a field nor a JMESPath expression: {why}'
    if not _is_selection(_tree(entry)):
        return f'"{entry[:60]}" computes a value. Write an expression that selects fields, such as cards[*].number'
    return ""


def plain_name(name: str) -> str:
    """Return a field's name in lower case, without "-", "_", "." and spaces, for comparison with other names."""
    return name.casefold().translate(_IGNORED)


_Node = tuple[JsonValue, Place | None]  # a value of the body and its place; place None: the whole body


@lru_cache(maxsize=1_024)
def _tree(path: str) -> Any:  # noqa: ANN401  the library has no types
    return jmespath.compile(path).parsed


def _is_selection(node: Any) -> bool:  # noqa: ANN401  as above
    kind = node["type"]
    children = node["children"]
    if kind not in _SELECTS or (kind == "index_expression" and _indexes_a_projection(children)):
        return False
    selecting = children[:2] if kind == "filter_projection" else children  # a filter's third child is its condition
    return all(_is_selection(child) for child in selecting if isinstance(child, dict))


def _indexes_a_projection(children: Sequence[Any]) -> bool:
    return children[0]["type"] in _MANY and children[1]["type"] == "index"


def _select(node: Any, at: _Node) -> Iterator[_Node]:  # noqa: ANN401  as above
    """Yield the nodes that an expression (`node` of its syntax tree) selects, evaluated at the body's node `at`."""
    children = node["children"]
    match node["type"]:
        case "field":
            yield from _member(at[0], node["value"])
        case "index" | "slice" as kind:
            found = slice(*children) if kind == "slice" else slice(node["value"], node["value"] + 1 or None)
            yield from _slice(at[0], found)
        case "subexpression" | "index_expression":
            selected = [at]
            for child in children:
                selected = [inner for element in selected for inner in _select(child, element)]
            yield from selected
        case "projection" | "value_projection" | "filter_projection" as kind:
            elements = _elements(children[0], at, values=kind == "value_projection")
            conditions = children[2:] if kind == "filter_projection" else ()
            for element in elements:
                if all(_holds(condition, element[0]) for condition in conditions):
                    yield from _select(children[1], element)
        case "flatten":
            yield from _elements(node, at, values=False)
        case _:  # an empty expression, or "@": it selects the node itself
            yield at


def _elements(node: Any, at: _Node, *, values: bool) -> Iterator[_Node]:  # noqa: ANN401  as above
    """Yield the elements of the list or object to which a JMESPath projection, such as cards[*], applies."""
    if node["type"] == "flatten":
        child = node["children"][0]
        inside = list(_select(child, at))
        members = inside if child["type"] in _MANY else [element for found in inside for element in _members(found[0])]
        for member in members:
            yield from _members(member[0]) if isinstance(member[0], list) else [member]
    elif node["type"] == "index_expression" and node["children"][1]["type"] == "slice":
        yield from _select(node, at)
    else:
        for value, _ in _select(node, at):
            yield from _members(value, of_objects=values)


def _member(value: JsonValue, name: str) -> Iterator[_Node]:
    if isinstance(value, dict) and name in value:
        yield value[name], (id(value), name)


def _slice(value: JsonValue, part: slice) -> Iterator[_Node]:
    if isinstance(value, list):
        for index in range(len(value))[part]:
            yield value[index], (id(value), index)


def _members(value: JsonValue, *, of_objects: bool = False) -> Iterator[_Node]:
    if of_objects and isinstance(value, dict):
        yield from ((member, (id(value), name)) for name, member in value.items())
    elif not of_objects and isinstance(value, list):
        yield from ((member, (id(value), index)) for index, member in enumerate(value))


def _holds(condition: Any, value: JsonValue) -> bool:  # noqa: ANN401  as above
    """Return whether a filter's condition holds. If it cannot be evaluated, return True: then the value is masked."""
    return jmespath_query.holds(condition, value)
