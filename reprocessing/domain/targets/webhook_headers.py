"""What a letter carries on its way to an HTTP endpoint: the headers, and that nobody can smuggle one in."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from reprocessing.domain.message import json_view
from reprocessing.domain.message.envelope import Attributes
from reprocessing.domain.message.json_view import Unreadable
from reprocessing.domain.message.redrive_attributes import MarkNames, read_mark

#: Characters of one value: servers of the usual sort take 8 KiB of all headers together.
LONGEST: Final = 1_024

_CONTENT_TYPE: Final = "Content-Type"
_NAME = re.compile(r"(?a)[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}")  # RFC 9110, 5.6.2: a token
# RFC 9110, 5.5, without what begins or ends in a blank: no control character, so no end of a line, stands in it.
_VALUE = re.compile(r"(?:[!-~\x80-\xff](?:[\t -~\x80-\xff]*[!-~\x80-\xff])?)?")
_PLAIN = re.compile(r"[!-~](?:[ -~]{0,253}[!-~])?")
_MEDIA_TYPE = re.compile(r"(?a)[\w!#$&^.+-]{1,127}/[\w!#$&^.+-]{1,127}(?:[ \t]*;[\t -~]*)?")  # RFC 6838, 4.2
#: What says where a message ends, where it goes, or how: the client's own, and nobody else's.
_OWN = frozenset((
    "connection", "content-encoding", "content-length", "expect", "host", "keep-alive", "te", "trailer",
    "transfer-encoding", "upgrade",
))  # fmt: skip
_USED = frozenset((
    "content-type", "redrive-attempt", "user-agent", "webhook-id", "webhook-timestamp", "webhook-signature"
))  # fmt: skip

#: The headers of marks whose attributes have the usual names; others travel under the attribute's name.
_USUAL: Final = {
    "RedriveId": "Redrive-Id",
    "IdempotencyKey": "Idempotency-Key",
    "OriginalMessageId": "Original-Message-Id",
    "ReprocessedFrom": "Reprocessed-From",
}


def headers(
    added: Attributes, names: MarkNames, *, attributes: Attributes, body: bytes, content_type: str = ""
) -> tuple[tuple[str, str], ...]:
    """What a letter's post carries besides the client's own headers and a signature; `is_header` holds for each.

    Args:
        added: its marks (`marks.marks`). Those with the usual names travel in the usual headers: Redrive-Id,
            Idempotency-Key, Original-Message-Id, Reprocessed-From; others under their own. A key that no header can
            hold is sent as its digest, the same every time; another mark that none can hold is left out.
        names: of the marks.
        attributes: the letter's; of them its own content type, if it has one.
        body: the letter's.
        content_type: the target's, for letters without one of their own.
    """
    made = [(_CONTENT_TYPE, _content_type(attributes, content_type, body))]
    for name, one in added.items():
        value = _held(str(one.value)) if name == names.idempotency_key else str(one.value)
        if is_header(_header(name), value):
            made.append((_header(name), value))
    if mark := read_mark(added, names):
        made.append(("Redrive-Attempt", str(mark.attempt_no)))
    return tuple(made)


def is_header(name: str, value: str) -> bool:
    """Whether it is one header, and no more: a token, a line of Latin-1, and none that the client writes itself."""
    good = _NAME.fullmatch(name) and len(value) <= LONGEST and _VALUE.fullmatch(value)
    return bool(good) and name.lower() not in _OWN


def is_media_type(text: str) -> bool:
    """Whether it can stand in a Content-Type header."""
    return bool(_MEDIA_TYPE.fullmatch(text)) and is_header(_CONTENT_TYPE, text)


def _content_type(attributes: Attributes, usual: str, body: bytes) -> str:
    """The letter's own, else the target's, else what the body is."""
    own = (one.value for name, one in attributes.items() if name.lower() == _CONTENT_TYPE.lower())
    for text in (*own, usual):
        if isinstance(text, str) and is_media_type(text):
            return text
    value = json_view.read(body)
    is_json = not isinstance(value, Unreadable) or value.is_json
    return "application/json" if is_json else "application/octet-stream"


def _header(name: str) -> str:
    """The header of a mark's attribute; an attribute's name is a token, but it may be one that is taken."""
    if name in _USUAL:
        return _USUAL[name]
    return f"Redrive-{name}" if name.lower() in _OWN | _USED else name


def _held(key: str) -> str:
    """The key, where a header can hold it."""
    return (
        key
        if not key or _PLAIN.fullmatch(key)
        else f"sha256-{hashlib.sha256(key.encode(errors='surrogatepass')).hexdigest()}"
    )
