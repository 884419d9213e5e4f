"""Describe an exception: its type, its text, and a fingerprint of the code that raised it."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import CodeType, TracebackType
from typing import Final

#: Most characters of an exception's text and type that the service stores.
LONGEST_MESSAGE: Final = 2_000
LONGEST_TYPE: Final = 200
#: How many of the traceback's innermost frames the fingerprint includes.
_FRAMES: Final = 50


@dataclass(frozen=True, slots=True)
class Reason:
    """The description of an exception: type, text (`message`) and fingerprint.

    In a report of success, all are empty.
    """

    type: str = ""
    message: str = ""
    fingerprint: str = ""


def reason_of(error: BaseException, *, message: bool = True, scrub: Callable[[str], str] | None = None) -> Reason:
    """Return the description of an exception. Never raises.

    `message`: include the exception's text, which may quote the payload. `scrub`: a function that gets this text,
    and returns it without secrets.
    """
    name = type_of(error)
    text = ""
    if message:
        try:
            text = str(error) if scrub is None else scrub(str(error))
        except Exception:  # noqa: BLE001  # of the exception's __str__, or of the scrubber
            text = "(its text could not be read)"
    return Reason(
        storable_text(name, LONGEST_TYPE), storable_text(text, LONGEST_MESSAGE), fingerprint(name, error.__traceback__)
    )


def type_of(error: BaseException) -> str:
    """Return the name of an exception's type. A type that is not built in has its module before the name."""
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def fingerprint(name: str, traceback: TracebackType | None) -> str:
    """Return 16 hexadecimal digits that are equal for failures with the same cause.

    They are the start of a SHA-256 hash of the exception type's name, and of the file and function names of the
    traceback's innermost 50 frames. Folders and line numbers are left out, so a deployment does not change the digits.
    A frame of a direct recursion counts once.
    """
    told = hashlib.sha256(name.encode(errors="replace"))
    for code in _innermost(traceback):
        file = code.co_filename.replace("\\", "/").rpartition("/")[2]  # Path is much slower
        told.update(f"\n{file}:{code.co_name}".encode(errors="replace"))
    return told.hexdigest()[:16]


def storable_text(text: str, longest: int) -> str:
    """Return the first `longest` characters of a text, without zero bytes, and with question marks for surrogates.

    PostgreSQL can store neither zero bytes nor surrogates (halves of a UTF-16 pair).
    """
    return text[:longest].replace("\0", "").encode(errors="replace").decode()


def _innermost(traceback: TracebackType | None) -> Iterable[CodeType]:
    codes: deque[CodeType] = deque(maxlen=_FRAMES)
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not codes or codes[-1] is not code:
            codes.append(code)
        traceback = traceback.tb_next
    return codes
