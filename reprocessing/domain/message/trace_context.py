"""Parse trace contexts: W3C's traceparent and tracestate, and AWS X-Ray's header. The input is not trusted.

https://www.w3.org/TR/trace-context/, https://docs.aws.amazon.com/xray/latest/devguide/xray-concepts.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

#: Names of the attributes and headers that carry W3C's context.
TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"

_TRACEPARENT: Final = re.compile(r"(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[ -~]{0,400})?")
_KEY: Final = r"[a-z0-9][a-z0-9_*/@-]{0,240}"
_MEMBER: Final = re.compile(rf"({_KEY})=([!-+\--<>-~ ]{{0,255}}[!-+\--<>-~])")
_LONGEST_STATE: Final = 512  # max characters; a longer `tracestate` is ignored
_MOST_MEMBERS: Final = 32
_XRAY_PART: Final = re.compile(r"(Root|Parent|Sampled)=([0-9a-f?-]{1,35})")
_XRAY_ROOT: Final = re.compile(r"1-([0-9a-f]{8})-([0-9a-f]{24})")
_SPAN: Final = re.compile(r"[0-9a-f]{16}")
_SAMPLED: Final = 1


@dataclass(frozen=True, slots=True)
class TraceContext:
    """The ids of the trace and the span in which a message was sent, with W3C's trace flags.

    `state`: the pairs of a key and a value in W3C's `tracestate`, which belong to tracing vendors.
    """

    trace_id: int
    span_id: int
    flags: int = _SAMPLED
    state: tuple[tuple[str, str], ...] = ()


def read_traceparent(traceparent: str, tracestate: str = "") -> TraceContext | None:
    """Return W3C's trace context; None if `traceparent` is not valid. A `tracestate` that is not valid is ignored."""
    found = _TRACEPARENT.fullmatch(traceparent.strip(" \t"))
    if found is None or (found[1] == "00" and found[5]):
        return None
    return _context(found[2], found[3], int(found[4], 16), _state(tracestate))


def read_fields(fields: Mapping[str, object]) -> TraceContext | None:
    """Return W3C's trace context from the fields `traceparent` and `tracestate`; None: there is no valid context."""
    parent, state = fields.get(TRACEPARENT), fields.get(TRACESTATE)
    return read_traceparent(parent, state if isinstance(state, str) else "") if isinstance(parent, str) else None


def read_xray(header: str) -> TraceContext | None:
    """Return the trace context in an X-Ray header; None: the header has no valid Root and Parent.

    The context counts as sampled, unless the header has `Sampled=0`.
    """
    parts = dict(part for text in header.split(";")[:10] if (part := _xray_part(text)))
    root = _XRAY_ROOT.fullmatch(parts.get("Root", ""))
    if root is None or not _SPAN.fullmatch(parts.get("Parent", "")):
        return None
    return _context(root[1] + root[2], parts["Parent"], 0 if parts.get("Sampled") == "0" else _SAMPLED, ())


def _context(trace: str, span: str, flags: int, state: tuple[tuple[str, str], ...]) -> TraceContext | None:
    trace_id, span_id = int(trace, 16), int(span, 16)
    return TraceContext(trace_id, span_id, flags, state) if trace_id and span_id else None


def _state(text: str) -> tuple[tuple[str, str], ...]:
    if len(text) > _LONGEST_STATE:
        return ()
    found = [_MEMBER.fullmatch(member.strip(" \t")) for member in text.split(",") if member.strip(" \t")]
    members = [(member[1], member[2]) for member in found if member]
    is_valid = len(members) == len(found) <= _MOST_MEMBERS and len(dict(members)) == len(members)
    return tuple(members) if is_valid else ()


def _xray_part(text: str) -> tuple[str, str] | None:
    found = _XRAY_PART.fullmatch(text.strip(" \t"))
    return (found[1], found[2]) if found else None
