"""Read the envelope that kombu (Celery's transport) puts around a task, and the payload in it, with size limits.

kombu 5.7 (kombu.transport.SQS, kombu.transport.virtual) writes the envelope as JSON, plain or in base64. The payload
inside the envelope is text or base64, possibly compressed.
"""

from __future__ import annotations

import base64
import binascii
import bz2
import lzma
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from reprocessing.domain.message import json_view
from reprocessing.domain.message.json_view import JsonValue, Unreadable

#: Default limit of a payload's bytes: the largest SQS message.
LIMIT = 1 << 20
JSON = "application/json"
_LZMA_MEMORY = 64 << 20  # max bytes of memory to unpack LZMA; enough for all presets of LZMA
#: Why a payload is not shown, by content type. Reading a pickle runs code.
_NOT_SHOWN = {
    "application/x-python-serialize": "its payload is pickled, and unpickling could run code",
    "application/x-yaml": "its payload is YAML, which this service does not read",
    "application/x-msgpack": "its payload is msgpack, which this service does not read",
    "application/data": "its payload is signed, or raw bytes, which this service does not read",
}


@dataclass(frozen=True, slots=True)
class NotATask:
    """The body is not a Celery task message. `harm`: the damage that it does to a worker; "": workers reject it."""

    why: str
    harm: str = ""


@dataclass(frozen=True, slots=True)
class NotShown:
    """The payload cannot be shown, because of `why`. `damaged`: workers cannot read the payload either."""

    why: str
    damaged: bool = False


@dataclass(frozen=True, slots=True)
class Envelope:
    """The envelope of one kombu message: its JSON as text, and parsed (`document`). `encoded`: it was in base64."""

    text: str = field(repr=False)
    encoded: bool
    document: Mapping[str, JsonValue] = field(repr=False)

    @property
    def headers(self) -> Mapping[str, JsonValue]:
        """Return the envelope's headers, which describe the task in Celery's message protocol 2; may be empty."""
        found = self.document.get("headers")
        return found if isinstance(found, dict) else {}

    @property
    def properties(self) -> Mapping[str, JsonValue]:
        """Return the envelope's properties, which are for the broker, such as the delivery tag."""
        found = self.document.get("properties")
        return found if isinstance(found, dict) else {}

    @property
    def content_type(self) -> str:
        """Return the content type of the payload; empty: not stated."""
        found = self.document.get("content-type")
        return found if isinstance(found, str) else ""

    @property
    def compression(self) -> str:
        """Return the compression of the payload; empty: none."""
        found = self.headers.get("compression")
        return found if isinstance(found, str) else ""

    @property
    def payload_encoded(self) -> bool:
        """Return whether the payload is in base64."""
        return self.properties.get("body_encoding") == "base64"


def open_envelope(body: bytes, document: JsonValue | Unreadable | None = None) -> Envelope | NotATask | Unreadable:
    """Return the envelope of a body, or why the body has none. Never raises.

    Return `Unreadable` if kombu may find an envelope where this parser finds none. `document`: the result of
    `json_view.read` for the body; None: the body was not parsed yet.
    """
    decoded = _decoded(body)
    raw = body if decoded is None else decoded
    found = json_view.read(raw) if decoded is not None or document is None else document
    if isinstance(found, Unreadable) and found.is_json:
        return found
    if not isinstance(found, dict) or "properties" not in found:
        return NotATask("it is not a kombu message")
    if (why := _unfit(found)) or not isinstance(found.get("body"), str):
        return NotATask("it is not a kombu message", why)
    return Envelope(raw.decode(), decoded is not None, found)


def close_envelope(envelope: Envelope, text: str) -> bytes:
    """Return a message body with the envelope `text`, in base64 if the given envelope was in base64."""
    return base64.b64encode(text.encode()) if envelope.encoded else text.encode()


def payload_json(envelope: Envelope, *, limit: int = LIMIT) -> JsonValue | NotShown:
    """Return the payload as parsed JSON, or why it is not shown. Never raises. At most `limit` bytes are unpacked."""
    raw = _decoded_payload(envelope)  # also of other content types, because kombu decodes every payload
    if isinstance(raw, NotShown):
        return raw
    if envelope.content_type not in (JSON, ""):
        unknown = "its payload has a content type that this service does not know"
        return NotShown(_NOT_SHOWN.get(envelope.content_type, unknown))
    payload = _decompressed(envelope, raw, limit)
    if isinstance(payload, NotShown):
        return payload
    found = json_view.read(payload)
    return NotShown(found.why, damaged=not found.is_json) if isinstance(found, Unreadable) else found


def unpack_payload(envelope: Envelope, *, limit: int = LIMIT) -> bytes | NotShown:
    """Return the payload's bytes, decoded and decompressed, or why they cannot be shown; at most `limit` bytes."""
    raw = _decoded_payload(envelope)
    return raw if isinstance(raw, NotShown) else _decompressed(envelope, raw, limit)


def _decoded_payload(envelope: Envelope) -> bytes | NotShown:
    text = envelope.document["body"]
    assert isinstance(text, str)  # noqa: S101  # checked by `open_envelope`
    try:
        return base64.b64decode(text.encode()) if envelope.payload_encoded else text.encode()
    except binascii.Error:
        return NotShown("its payload is not base64", damaged=True)


def _decompressed(envelope: Envelope, raw: bytes, limit: int) -> bytes | NotShown:
    if not envelope.compression:
        return raw if len(raw) <= limit else _too_large(limit)
    if compression := _COMPRESSIONS.get(envelope.compression):
        return compression.open(raw, limit)
    return NotShown("its payload has a compression that this service does not know")


def pack_payload(envelope: Envelope, payload: bytes) -> str:
    """Return a payload encoded and compressed as the envelope says. The reverse of `unpack_payload`."""
    raw = _COMPRESSIONS[envelope.compression].compress(payload) if envelope.compression else payload
    return base64.b64encode(raw).decode() if envelope.payload_encoded else raw.decode()


@dataclass(frozen=True, slots=True)
class _Compression:
    """A compression of payloads: a function that compresses, and a function that returns a new decompressor."""

    compress: Callable[[bytes], bytes]
    begin: Callable[[], zlib._Decompress | bz2.BZ2Decompressor | lzma.LZMADecompressor]

    def open(self, raw: bytes, limit: int) -> bytes | NotShown:
        opener = self.begin()
        try:
            payload = opener.decompress(raw, limit + 1)
        except (zlib.error, OSError, ValueError, EOFError, lzma.LZMAError) as error:
            needs_memory = isinstance(error, lzma.LZMAError) and "memory" in str(error).lower()
            return _too_large(limit) if needs_memory else NotShown("its compressed payload is damaged", damaged=True)
        if len(payload) > limit:
            return _too_large(limit)
        return payload if opener.eof else NotShown("its compressed payload is incomplete", damaged=True)


_ZLIB = _Compression(zlib.compress, zlib.decompressobj)  # kombu also uses zlib under the name gzip
_BZ2 = _Compression(bz2.compress, bz2.BZ2Decompressor)
_LZMA = _Compression(lzma.compress, lambda: lzma.LZMADecompressor(memlimit=_LZMA_MEMORY))
_COMPRESSIONS = {
    **dict.fromkeys(("application/x-gzip", "gzip", "zlib"), _ZLIB),
    **dict.fromkeys(("application/x-bz2", "bzip2", "bzip"), _BZ2),
    **dict.fromkeys(("application/x-lzma", "lzma", "xz"), _LZMA),
}


def _too_large(limit: int) -> NotShown:
    return NotShown(f"its payload has more than {limit} bytes, the most that is read")


def _decoded(body: bytes) -> bytes | None:
    """Return the text in a base64 body; None: it is not base64, and kombu reads the body as it is."""
    candidate = body.strip()
    if candidate[:1] == b"{":
        return None
    try:
        decoded = base64.b64decode(candidate, validate=True)
        decoded.decode()
    except ValueError:  # errors of base64 and of UTF-8 are ValueErrors
        return None
    return decoded


def _unfit(document: Mapping[str, JsonValue]) -> str:
    """Return why the message would stop a worker that receives it (kombu 5.7.0); "": it would not stop a worker."""
    properties = document["properties"]
    info = properties.get("delivery_info", {}) if isinstance(properties, dict) else None
    headers, body = document.get("headers"), document.get("body")
    encoding = properties.get("body_encoding") if isinstance(properties, dict) else None
    fits = (
        isinstance(info, dict)
        and isinstance(info.get("routing_key", ""), str)
        and (not headers or isinstance(headers, dict))
        and (not body or isinstance(body, str))
        and (not encoding or (isinstance(encoding, str) and (encoding == "base64" or encoding.lower() == "utf-8")))
    )
    return "" if fits else "it would stop the worker that receives it"
