"""Write the command with which a person sends a message by hand: AWS CLI for queues, curl for HTTP endpoints."""

from __future__ import annotations

import base64
import json
import shlex
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from reprocessing.domain.message.envelope import Attributes
from reprocessing.domain.message.safe_text import visible

#: Max characters of a body inside the command. For a longer body, the command reads a file that the person downloads.
LONGEST: Final = 2_000


@dataclass(frozen=True, slots=True)
class MessageToSend:
    """The message that a command sends. `file`: the name of the file with the body, which the person downloads.

    `group`: the message group id. `deduplication`: the deduplication id. Both are empty if the queue is not FIFO.
    """

    body: bytes = field(repr=False)
    attributes: Attributes = field(repr=False)
    file: str
    group: str = ""
    deduplication: str = ""


def aws_command(message: MessageToSend, *, url: str, region: str) -> str | None:
    """Return the command that sends a message to an SQS queue; None: a command cannot carry its body or attributes."""
    if _text(message.body) is None or visible(message.group) != message.group:
        return None  # SQS accepts only text; the AWS CLI reads a file as text, too
    parts = [f"aws sqs send-message --queue-url {shlex.quote(url)}", f"--region {shlex.quote(region)}"]
    inline = _inline(message.body)
    parts.append(f"--message-body={shlex.quote(inline) if inline is not None else f'file://{message.file}'}")
    if message.attributes:
        attributes = _attributes(message.attributes)
        if visible(attributes) != attributes:
            return None
        parts.append(f"--message-attributes={shlex.quote(attributes)}")
    if message.group:
        parts.append(f"--message-group-id={shlex.quote(message.group)}")
        parts.append(f"--message-deduplication-id={shlex.quote(message.deduplication)}")
    return " \\\n  ".join(parts)


def curl_command(message: MessageToSend, *, url: str, headers: tuple[tuple[str, str], ...]) -> str | None:
    """Return the command that posts a message to an HTTP endpoint, without a signature; None: the URL has a password.

    `headers`: names and values.
    """
    if "@" in urlsplit(url).netloc:
        return None
    inline = _inline(message.body)
    parts = [f"curl --request POST {shlex.quote(url)}"]
    parts += [f"--header {shlex.quote(f'{name}: {value}')}" for name, value in headers]
    if inline is None or inline.startswith("@"):  # after an @, curl expects the name of a file
        parts.append(f"--data-binary @{message.file}")
    else:
        parts.append(f"--data-binary {shlex.quote(inline)}")
    return " \\\n  ".join(parts)


def _inline(body: bytes) -> str | None:
    """Return a body as text, to write it into a command; None: it must be read from a file.

    A file is needed for a long body, and for bytes that a terminal would change. A file is also needed for a text that
    begins with file:// or fileb://, because the AWS CLI would read the file of this name.
    """
    text = _text(body)
    if text is None or len(text) > LONGEST or visible(text) != text or text.startswith(("file://", "fileb://")):
        return None
    return text


def _text(body: bytes) -> str | None:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None


def _attributes(attributes: Attributes) -> str:
    """Return attributes as JSON in ASCII, as the AWS CLI reads them."""
    return json.dumps({
        name: {"DataType": each.type}
        | (
            {"BinaryValue": base64.b64encode(each.value).decode()}
            if isinstance(each.value, bytes)
            else {"StringValue": each.value}
        )
        for name, each in sorted(attributes.items())
    })  # fmt: skip
