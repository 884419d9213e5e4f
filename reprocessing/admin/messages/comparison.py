"""Compare the bodies and attributes of two messages, or of two versions of a message, line by line for display."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from reprocessing.admin.messages.readable_bytes import indented, readable, visible
from reprocessing.domain.message import text_diff
from reprocessing.domain.message.envelope import Attribute

Version = tuple[bytes, Mapping[str, Attribute]]
_WAYS: Final = {" ": "same", "+": "put-in", "-": "taken-out", "@": "place"}


def differences(before: Version, after: Version) -> list[dict[str, Any]]:
    """Return two dicts for the template: the first about the bodies, the second about the attributes.

    In each dict, `lines` has the differing lines, marked with + or -. `cut` is the number of lines that are left out.
    `note` says why there are no differing lines; it is empty if there are some.
    """
    return [
        _part("Body", _text(before[0]), _text(after[0]), same=before[0] == after[0]),
        _part("Attributes", _lines(before[1]), _lines(after[1]), same=dict(before[1]) == dict(after[1])),
    ]


def _part(name: str, before: str, after: str, *, same: bool) -> dict[str, Any]:
    found = text_diff.text_diff(before, after)
    note = "No difference." if same else "" if found.lines else "Only white space differs."
    lines = [{"way": _WAYS[line.mark], "mark": line.mark, "text": visible(line.text)} for line in found.lines]
    return {"name": name, "lines": lines, "cut": found.cut, "note": note}


def _text(body: bytes) -> str:
    try:
        return indented(body)
    except UnicodeDecodeError:
        return readable(body).text


def _lines(attributes: Mapping[str, Attribute]) -> str:
    return "\n".join(_line(name, attribute) for name, attribute in sorted(attributes.items()))


def _line(name: str, attribute: Attribute) -> str:
    value = attribute.value if isinstance(attribute.value, str) else readable(attribute.value).text
    return f"{name} ({attribute.type}): {value}"
