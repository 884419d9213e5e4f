"""Show a body as text, as a tree if it is JSON, and in a command with which a person can send the message by hand.

Text, tree and command have a maximum size in bytes of HTML, so that the page stays small.
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from dataclasses import dataclass, field, replace
from typing import Any, Final, assert_never

from django.utils.html import escape

from reprocessing import conf
from reprocessing.admin.messages import readable_bytes
from reprocessing.admin.messages.readable_bytes import Readable, visible
from reprocessing.domain.message import json_tree, json_view
from reprocessing.domain.message.body_format import BodyFormat
from reprocessing.domain.message.envelope import Attribute
from reprocessing.domain.message.json_tree import Closed, Label, Leaf, Opened, Step, Stopped
from reprocessing.domain.message.json_view import Unreadable
from reprocessing.domain.targets import send_command, webhook_headers
from reprocessing.domain.targets.send_command import MessageToSend
from reprocessing.domain.targets.target_kind import QUEUE_KINDS, TargetKind
from reprocessing.models import Letter, Target
from reprocessing.store.payloads.viewed_content import ViewedContent

#: Max values in a tree, and max bytes of the tree's HTML.
MOST_VALUES: Final = 400
TREE_BYTES: Final = 36_000
#: Max bytes of HTML: of a body, of the message inside an SNS notification, of all values of attributes together, and of
#: a command.
BODY_BYTES: Final = 36_000
INNER_BYTES: Final = 8_000
ATTRIBUTE_BYTES: Final = 12_000
COMMAND_BYTES: Final = 12_000
_ROW_BYTES, _TEXT_SHOWN = 90, 300  # HTML bytes of a row without its texts, and max characters of a text in the tree
_OPEN_DEPTH = 2  # objects and lists up to this depth are open at first
_ESCAPED: Final = 14  # max bytes of HTML for one character: &lt;U+0001&gt;


@dataclass(slots=True)
class Tree:
    """A body as a tree.

    Attributes:
        rows: values for the template, in the order of the document.
        values: how many values are shown.
        is_cut: whether the tree leaves out values at the end of the document, because there are too many.
        is_stopped: whether the end of the document could not be read, because it is nested too deep.
    """

    rows: list[dict[str, Any]] = field(default_factory=list, repr=False)
    values: int = 0
    is_cut: bool = False
    is_stopped: bool = False


@dataclass(frozen=True, slots=True)
class Raw:
    """A body as text. `is_exact`: whether the text is exactly the body, so that a person can copy it."""

    shown: Readable = field(repr=False)
    is_exact: bool


@dataclass(frozen=True, slots=True)
class Command:
    """A command line that sends a message to its target.

    `reads_file`: whether the command reads the body from a file, which the person must download first.
    `lacks_signature`: whether the target expects a signature. The command does not contain the signature.
    """

    text: str = field(repr=False)
    reads_file: bool
    lacks_signature: bool


def command(letter: Letter, held: ViewedContent) -> Command | None:
    """Return the command line that sends this payload to the message's target.

    None: the target is neither a queue nor an HTTP endpoint, or the payload does not fit into a command.
    """
    target: Target | None = letter.target
    if target is None:
        return None
    group = str(held.system.get("MessageGroupId") or letter.message_id) if target.fifo else ""
    once = f"by-hand-{letter.public_id}" if target.fifo else ""
    message = MessageToSend(held.body, held.attributes, f"{letter.public_id}.body", group, once)
    text: str | None = None
    if target.kind in QUEUE_KINDS:
        text = send_command.aws_command(message, url=target.url, region=target.region)
    elif target.kind == TargetKind.HTTP:
        text = send_command.curl_command(message, url=target.url, headers=_headers(letter, target, held))
    if text is None or _size(text) > COMMAND_BYTES:
        return None
    return Command(text, reads_file=message.file in text, lacks_signature=bool(target.secret))


def tree(body: bytes) -> Tree | None:
    """Return a body as a tree; None: the body is not a JSON object or list."""
    if body.lstrip()[:1] not in {b"{", b"["} or body.startswith(BOM_UTF8):
        return None
    document = json_view.read(body)
    if isinstance(document, Unreadable) and not document.is_json:
        return None
    found = _TreeBuilder()
    for step in json_tree.walk(body.decode()):
        found.add(step)
        if found.is_full:
            break
    return found.ended()


def raw(body: bytes, body_format: BodyFormat) -> Raw:
    """Return a body as text: JSON as it is written, other formats as `readable_as` shows them."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return Raw(cut_to(readable_bytes.readable(body), BODY_BYTES), is_exact=False)
    shown = readable_bytes.readable_as(body, body_format)
    if shown.form == "JSON":
        kept = text[: readable_bytes.LONGEST]
        shown = replace(shown, text=visible(kept), cut=len(text) > len(kept))
    shown = cut_to(shown, BODY_BYTES)
    return Raw(shown, is_exact=not shown.cut and shown.text == text)


def cut_to(shown: Readable, most: int) -> Readable:
    """Return a text, cut if necessary, so that its HTML has at most `most` bytes."""
    text = shown.text
    while (size := _size(text)) > most:
        text = text[: min(len(text) - 1, max(len(text) * most // size, most // _ESCAPED))]
    return shown if text == shown.text else replace(shown, text=text, cut=True)


def _size(text: str) -> int:
    return len(escape(text).encode())


def _headers(letter: Letter, target: Target, held: ViewedContent) -> tuple[tuple[str, str], ...]:
    key = {"IdempotencyKey": Attribute("String", letter.idempotency_key or letter.message_id)}
    return webhook_headers.headers(
        key, conf.current().marks, attributes=held.attributes, body=held.body, content_type=target.content_type
    )


class _TreeBuilder:
    """Collect the rows of a tree until the tree has its maximum size."""

    def __init__(self) -> None:
        self._tree, self._bytes, self._open = Tree(), 0, list[dict[str, Any]]()

    @property
    def is_full(self) -> bool:
        """Return whether the tree has its maximum size, so that no more values are added."""
        return self._tree.values >= MOST_VALUES or self._bytes >= TREE_BYTES

    def add(self, step: Step) -> None:
        """Add a value, or the beginning or end of an object or list."""
        match step:
            case Leaf(label, kind, text):
                cut = max(0, len(text) - _TEXT_SHOWN)
                self._add({**_named(label), "kind": kind, "text": visible(text[:_TEXT_SHOWN]), "cut": cut})
            case Opened(label, is_list):
                depth = len(self._open)
                row = {**_named(label), "kind": "open", "is_list": is_list, "is_open": depth < _OPEN_DEPTH}
                self._add(row)
                self._open.append(row)
            case Closed(count, unread):
                self._open.pop()["size"] = f"{count:,}"
                self._tree.rows.append({"kind": "close", "unread": unread})
            case Stopped():
                self._tree.is_stopped = True
            case _:
                assert_never(step)

    def ended(self) -> Tree:
        """Return the tree, with an end for each object and list that is not closed."""
        self._tree.is_cut = bool(self._open) and not self._tree.is_stopped
        while self._open:
            self._open.pop()["size"] = "…"
            self._tree.rows.append({"kind": "close", "unread": 0})
        return self._tree

    def _add(self, row: dict[str, Any]) -> None:
        self._tree.rows.append(row)
        self._tree.values += 1
        self._bytes += _ROW_BYTES + _size(row.get("text", "")) + _size(row["name"]) + len(row["exact"])


def _named(label: Label) -> dict[str, Any]:
    """Return the name or list index of a value in the tree, for the template.

    If the page shows the name changed or cut, `exact` has the name as a JSON text. From this text, a script of the page
    makes the path of the value.
    """
    if label.name is None:
        index = "" if label.index is None else str(label.index)
        return {"name": index, "exact": "", "is_index": True, "is_repeated": False}
    shown = visible(label.name[:_TEXT_SHOWN])
    exact = "" if shown == label.name else json.dumps(label.name[: 10 * _TEXT_SHOWN])
    return {"name": shown, "exact": exact, "is_index": False, "is_repeated": label.is_repeated}
