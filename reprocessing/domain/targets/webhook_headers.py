"""Build the headers of a letter for an HTTP endpoint, and reject values that would forge other headers."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from reprocessing.domain.message import json_view
from reprocessing.domain.message.envelope import Attributes
from reprocessing.domain.message.json_view import Unreadable
from reprocessing.domain.message.redrive_attributes import MarkNames, read_mark

#: Max characters of one header's value. Servers usually accept 8 KiB of all headers together.
LONGEST: Final = 1_024

_CONTENT_TYPE: Final = "Content-Type"
_NAME = re.compile(r"(?a)[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}")  # a header's name (RFC 9110, 5.6.2: a token)
# RFC 9110, 5.5: no control characters, so no line breaks; no blank at either end.
_VALUE = re.compile(r"(?:[!-~\x80-\xff](?:[\t -~\x80-\xff]*[!-~\x80-\xff])?)?")
_PLAIN = re.compile(r"[!-~](?:[ -~]{0,253}[!-~])?")
_MEDIA_TYPE = re.compile(r"(?a)[\w!#$&^.+-]{1,127}/[\w!#$&^.+-]{1,127}(?:[ \t]*;[\t -~]*)?")  # RFC 6838: media type
#: Headers about framing and routing, which the HTTP client writes.
_OWN = frozenset((
    "connection", "content-encoding", "content-length", "expect", "host", "keep-alive", "te", "trailer",
    "transfer-encoding", "upgrade",
))  # fmt: skip
#: Headers that the service itself sets.
_USED = frozenset((
    "content-type", "redrive-attempt", "user-agent", "webhook-id", "webhook-timestamp", "webhook-signature"
))  # fmt: skip

#: Header names for marks (attributes that the service adds) with default names. For other marks, the header has the
#: attribute's name.
_USUAL: Final = {
    "RedriveId": "Redrive-Id",
    "IdempotencyKey": "Idempotency-Key",
    "OriginalMessageId": "Original-Message-Id",
    "ReprocessedFrom": "Reprocessed-From",
}


def headers(
    added: Attributes, names: MarkNames, *, attributes: Attributes, body: bytes, content_type: str = ""
) -> tuple[tuple[str, str], ...]:
    """Return a letter's HTTP headers, without the signature and the headers that the HTTP client writes.

    `added`: the letter's marks (attributes that the service adds). `names`: the names of the marks. If an idempotency
    key is not a valid header value, its SHA-256 is sent. Other marks that are not valid are omitted.
    `attributes`: the letter's own attributes, of which only Content-Type is read. If it is missing, `content_type` (the
    target's setting) is used. If both are missing, the content type depends on whether `body` is JSON.
    """
    made = [(_CONTENT_TYPE, _content_type(attributes, content_type, body))]
    for name, attribute in added.items():
        value = _plain_or_hash(str(attribute.value)) if name == names.idempotency_key else str(attribute.value)
        if is_header(_header(name), value):
            made.append((_header(name), value))
    if mark := read_mark(added, names):
        made.append(("Redrive-Attempt", str(mark.attempt_no)))
    return tuple(made)


def is_header(name: str, value: str) -> bool:
    """Return whether name and value form a valid header that the HTTP client does not write itself."""
    good = _NAME.fullmatch(name) and len(value) <= LONGEST and _VALUE.fullmatch(value)
    return bool(good) and name.lower() not in _OWN


def is_media_type(text: str) -> bool:
    """Return whether `text` can be the value of the header Content-Type."""
    return bool(_MEDIA_TYPE.fullmatch(text)) and is_header(_CONTENT_TYPE, text)


def _content_type(attributes: Attributes, usual: str, body: bytes) -> str:
    own = (attribute.value for name, attribute in attributes.items() if name.lower() == _CONTENT_TYPE.lower())
    for text in (*own, usual):
        if isinstance(text, str) and is_media_type(text):
            return text
    value = json_view.read(body)
    is_json = not isinstance(value, Unreadable) or value.is_json
    return "application/json" if is_json else "application/octet-stream"


def _header(name: str) -> str:
    """Return the name of the HTTP header for an added attribute. A reserved name gets the prefix "Redrive-"."""
    if name in _USUAL:
        return _USUAL[name]
    return f"Redrive-{name}" if name.lower() in _OWN | _USED else name


def _plain_or_hash(key: str) -> str:
    if not key or _PLAIN.fullmatch(key):
        return key
    return f"sha256-{hashlib.sha256(key.encode(errors='surrogatepass')).hexdigest()}"
