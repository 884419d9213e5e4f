"""Evaluate JMESPath expressions with a limit on the cost, for any expression and any document."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathTypeError
from jmespath.functions import Functions, signature
from jmespath.visitor import Options, TreeInterpreter

from reprocessing.domain.message.json_view import JsonValue

LENGTH = 256  #: max characters of an expression
DEPTH = 32  #: max nesting of an expression
#: Cost limit of one evaluation: one step for each visited node and for each element that is copied or compared.
STEPS = 10_000

_BYTES_A_STEP = 64  # bytes of a searched, compared or joined text that cost one step
#: Functions that do not read values nested in their argument, so that they cost one step for each of its members.
_SHALLOW = frozenset({"keys", "length", "not_null", "to_array", "type", "values"})
#: Functions that rules may call. JMESPath's other functions are useless in a rule, or accept no fractions (`sum`).
FUNCTIONS = frozenset({"contains", "ends_with", "join", "keys", "length", "not_null", "starts_with", "values"})
#: Types of the nodes that a plain path consists of.
_PATH = frozenset({"field", "index", "index_expression", "subexpression"})


@dataclass(frozen=True, slots=True)
class Failed:
    """An expression failed. `why` never contains message data. `exhausted`: it needed over 10,000 steps (`STEPS`)."""

    why: str
    exhausted: bool = False


def search(expression: str, document: JsonValue) -> object:
    """Return the value that an expression finds in a document; None if it finds none. Never raises.

    An error is returned as `Failed`. A field that the document lacks is null. A function that gets null returns null.
    """
    try:
        return _Interpreter().visit(_compiled(expression).parsed, document)
    except _Exhausted:
        return Failed(f"the expression takes more than {STEPS} steps on this message", exhausted=True)
    except JMESPathTypeError as error:  # the error's text is not used: it quotes the value
        return Failed(f"{error.function_name}() was given a value of the wrong type")
    except Exception as error:  # noqa: BLE001 - whatever fails in the library, this letter cannot be evaluated
        return Failed(f"the expression fails on this message ({type(error).__name__})")


def holds(condition: Any, value: JsonValue) -> bool:  # noqa: ANN401  a node of a compiled expression
    """Return whether the condition of a JMESPath filter, such as [?kind=='card'], holds for a value.

    If the condition cannot be evaluated, return True: the caller then masks too much, and not too little.
    """
    try:
        found = _Interpreter().visit(condition, value)
    except Exception:  # noqa: BLE001 - as in `search`
        return True
    return not (found is None or found is False or found in ("", [], {}))


def problem(expression: str, *, as_in: str = "body:order.id") -> str | None:
    """Return why a text is not a usable expression; None: it is usable. `as_in`: the example in the returned text."""
    if not expression or len(expression) > LENGTH:
        where = as_in.partition(":")[0]
        return f"{where}: needs a JMESPath expression of 1 to {LENGTH} characters, such as {as_in}."
    try:
        tree = _compiled(expression).parsed
    except Exception as error:  # noqa: BLE001 - the library's parser may raise anything
        return f"{' '.join(str(error).split())}. See jmespath.org for what an expression may be."
    if len(_levels(tree)) > DEPTH:
        return f"its expression is nested more than {DEPTH} deep. Write a simpler one."
    return None


def problem_of_rule(expression: str) -> str | None:
    """Return why rules may not use this valid expression, such as a forbidden function; None: they may use it."""
    nodes = [node for level in _levels(_compiled(expression).parsed) for node in level]
    for node in (node for node in nodes if node["type"] == "function_expression"):
        if (name := node["value"]) not in FUNCTIONS:
            return f"a rule may not call {name}(). It may call {', '.join(sorted(FUNCTIONS))}."
        wanted = Functions.FUNCTION_TABLE[name]["signature"]
        given, variadic = len(node["children"]), wanted[-1].get("variadic", False)
        if given < len(wanted) or (given > len(wanted) and not variadic):
            return f"{name}() takes {len(wanted)}{' or more' if variadic else ''} arguments, not {given}."
    return None


def is_path(expression: str) -> bool:
    """Return whether a valid expression is a plain path, without comparisons and functions."""
    return all(node["type"] in _PATH for level in _levels(_compiled(expression).parsed) for node in level)


class _Exhausted(Exception):
    """The evaluation of an expression needs more than 10,000 steps (`STEPS`)."""


class _Functions(Functions):  # type: ignore[misc]  # the library has no types
    @signature({"types": []})  # type: ignore[untyped-decorator]  # as above
    def _func_to_number(self, arg: object) -> object:
        # The library's to_number() drops fractions, and expands 1E999999999 to a billion digits.
        return arg if isinstance(arg, Decimal) else super()._func_to_number(arg)


_OPTIONS = Options(custom_functions=_Functions())


class _Interpreter(TreeInterpreter):  # type: ignore[misc]  # the library has no types
    """One evaluation of an expression. It counts steps before they run, and raises `_Exhausted` after 10,000."""

    def __init__(self) -> None:
        super().__init__(_OPTIONS)
        self._left = STEPS

    def visit(self, node: Any, value: object) -> Any:  # noqa: ANN401 - the library's
        self._left -= 1
        if self._left < 0:
            raise _Exhausted
        return super().visit(node, value)

    def visit_flatten(self, node: Any, value: object) -> Any:  # noqa: ANN401 - as above
        base = self.visit(node["children"][0], value)
        if isinstance(base, list):
            self._pay(len(base))
            self._pay(sum(len(element) for element in base if isinstance(element, list)))
        return super().visit_flatten({**node, "children": [_literal(base)]}, value)

    def visit_comparator(self, node: Any, value: object) -> Any:  # noqa: ANN401 - as above
        left, right = (self.visit(child, value) for child in node["children"])
        if node["value"] not in self._EQUALITY_OPS and isinstance(left, str) is not isinstance(right, str):
            return None  # as JMESPath's specification says; the library would raise
        self._weigh(left)
        self._weigh(right)
        return super().visit_comparator({**node, "children": [_literal(left), _literal(right)]}, value)

    def visit_function_expression(self, node: Any, value: object) -> Any:  # noqa: ANN401 - as above
        name, given = node["value"], [self.visit(child, value) for child in node["children"]]
        for argument in given:
            if name not in _SHALLOW:
                self._weigh(argument)
            elif isinstance(argument, list | dict):
                self._pay(len(argument))
        if name == "join" and len(given) > 1 and isinstance(given[0], str) and isinstance(given[1], list):
            self._pay(len(given[0]) * len(given[1]) // _BYTES_A_STEP)
        try:
            return self._functions.call_function(name, given)
        except JMESPathTypeError as error:
            if error.actual_type in ("null", "NoneType"):
                return None
            raise

    def _weigh(self, value: object) -> None:
        """Count one step for each element of a value, including nested elements, and for each 64 characters of text."""
        left = [value]
        while left:
            element = left.pop()
            if isinstance(element, str):
                self._pay(len(element) // _BYTES_A_STEP)
            elif isinstance(element, list):
                self._pay(len(element))
                left.extend(element)
            elif isinstance(element, dict):
                self._pay(len(element))
                left.extend(element.values())

    def _pay(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise _Exhausted


def _literal(value: object) -> dict[str, object]:
    return {"type": "literal", "value": value, "children": []}


def _levels(tree: Any) -> list[list[Any]]:  # noqa: ANN401 - the library's own tree, of plain dictionaries
    levels, level = [], [tree]
    while level:
        levels.append(level)
        level = [child for node in level for child in node.get("children", ()) if isinstance(child, dict)]
    return levels


@lru_cache(maxsize=1024)
def _compiled(expression: str) -> Any:  # noqa: ANN401 - the library has no types
    return jmespath.compile(expression)
