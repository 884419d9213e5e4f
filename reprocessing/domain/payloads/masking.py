"""Mask values in a message, as its mask rules say. A value that cannot be searched for fields is masked as a whole.

Fields are also searched in JSON inside a text, such as an SNS notification or an attribute. Two kinds of texts are
always masked as a whole: base64 of JSON or gzip, and Celery's descriptions of a task's arguments (`argsrepr`,
`kwargsrepr`).
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from reprocessing.domain.message import json_view
from reprocessing.domain.message.envelope import Attribute, Attributes
from reprocessing.domain.message.json_view import JsonValue, Unreadable
from reprocessing.domain.payloads.mask_rules import MaskRules, Place, plain_name

#: The text that is shown in place of a masked value.
MASK: Final = "[masked]"
_NO_FIELDS: Final = b"[masked: the body is not a JSON object or list, so its fields cannot be masked one by one]"
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}\s*")
_NESTED: Final = 4  # max levels of JSON inside texts of JSON that are searched
_REPRESENTATIONS: Final = frozenset({"argsrepr", "kwargsrepr"})  # fields in which Celery describes a task's arguments


@dataclass(frozen=True, slots=True)
class MaskedContent:
    """A message's body and attributes with masked values. `is_masked`: whether a value was masked."""

    body: bytes = field(repr=False)
    attributes: dict[str, Attribute] = field(repr=False)
    is_masked: bool


def mask(body: bytes, attributes: Attributes, rules: MaskRules) -> MaskedContent:
    """Return a message whose values are masked as the rules say. Without rules, nothing is masked."""
    if not rules:
        return MaskedContent(body, dict(attributes), is_masked=False)
    masker = _Masker(rules)
    shown = {name: masker.attribute(name, attribute) for name, attribute in attributes.items()}
    return MaskedContent(masker.body(body), shown, is_masked=masker.masked)


def masked_document(document: JsonValue, rules: MaskRules) -> JsonValue:
    """Return the JSON of a body whose values are masked as the rules say. Without rules, nothing is masked."""
    if not rules:
        return document
    return _Masker(rules).document(document, nested=0) if isinstance(document, dict | list) else MASK


class _Masker:
    """Masks the values of one message. `masked`: whether any value was masked so far."""

    def __init__(self, rules: MaskRules) -> None:
        self._rules, self.masked = rules, False

    def body(self, body: bytes) -> bytes:
        if not body.strip():
            return body
        document = json_view.read(body)
        if not isinstance(document, dict | list):
            self.masked = True
            return _NO_FIELDS
        before, self.masked = self.masked, False
        shown = self.document(document, nested=0)
        touched = self.masked or _repeats_a_name(body)
        self.masked = touched or before
        return _text(shown).encode() if touched else body

    def attribute(self, name: str, attribute: Attribute) -> Attribute:
        if isinstance(attribute.value, bytes) or self._rules.has_name(name):
            return Attribute(attribute.type, self._mask())
        return Attribute(attribute.type, self._inside(attribute.value, nested=0))

    def document(self, document: dict[str, JsonValue] | list[JsonValue], *, nested: int) -> JsonValue:
        if self._rules.select_whole(document):
            return self._mask()
        return self._value(document, self._rules.places(document), nested)

    def _mask(self) -> str:
        self.masked = True
        return MASK

    def _value(self, value: JsonValue, places: frozenset[Place], nested: int) -> JsonValue:
        match value:
            case dict():
                return {
                    name: self._mask()
                    if (id(value), name) in places or self._is_secret(value, name)
                    else self._value(member, places, nested)
                    for name, member in value.items()
                }
            case list():
                return [
                    self._mask() if (id(value), index) in places else self._value(member, places, nested)
                    for index, member in enumerate(value)
                ]
            case str():
                return self._inside(value, nested)
            case _:
                return value

    def _is_secret(self, around: dict[str, JsonValue], name: str) -> bool:
        if self._rules.has_name(name) or plain_name(name) in _REPRESENTATIONS:
            return True
        is_task = name == "body" and "headers" in around and "properties" in around
        return is_task and isinstance(around[name], str)

    def _inside(self, text: str, nested: int) -> str:
        """Return a text with the fields of its JSON masked as the rules say.

        If the text may have fields that cannot be found, such as in broken JSON, it is masked as a whole.
        """
        start = text.lstrip()[:1]
        if start in {"{", "["} and start:
            document = json_view.read(text.encode(errors="surrogatepass"))
            if isinstance(document, Unreadable):
                return self._mask() if document.is_json or '"' in text else text
            if not isinstance(document, dict | list) or nested >= _NESTED:
                return self._mask()
            return self._rewritten(text, document, nested)
        return self._mask() if _BASE64.fullmatch(text) and _has_json(text) else text

    def _rewritten(self, text: str, document: dict[str, JsonValue] | list[JsonValue], nested: int) -> str:
        before, self.masked = self.masked, False
        shown = self.document(document, nested=nested + 1)
        touched = self.masked or _repeats_a_name(text)
        self.masked = touched or before
        return _text(shown) if touched else text


def _repeats_a_name(text: str | bytes) -> bool:
    """Return whether an object of the JSON has the same name twice.

    The parsed document has only the last value, so the first value would be shown unmasked.
    """
    try:
        json.loads(text, parse_int=str, parse_float=str, object_pairs_hook=_unique)
    except ValueError:
        return True
    return False


def _unique(members: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(members)
    if len(found) < len(members):
        raise ValueError
    return found


def _has_json(text: str) -> bool:
    plain = text.strip().replace("-", "+").replace("_", "/").rstrip("=")
    try:
        found = base64.b64decode(plain + "=" * (-len(plain) % 4))
    except (binascii.Error, ValueError):
        return False
    return found.lstrip()[:1] in {b"{", b"["} or found[:2] == b"\x1f\x8b"


def _text(value: JsonValue) -> str:
    return "".join(_pieces(value))


def _pieces(value: JsonValue) -> Iterable[str]:
    match value:
        case dict():
            yield "{"
            for index, (name, member) in enumerate(value.items()):
                yield f"{', ' if index else ''}{json.dumps(name, ensure_ascii=False)}: "
                yield from _pieces(member)
            yield "}"
        case list():
            yield "["
            for index, member in enumerate(value):
                yield ", " if index else ""
                yield from _pieces(member)
            yield "]"
        case bool() | None | str():
            yield json.dumps(value, ensure_ascii=False)
        case int() | Decimal():
            yield json_view.number_text(value)
