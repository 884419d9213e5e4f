"""Why a message failed: an exception's type, its text, and a fingerprint of where it came from."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import CodeType, TracebackType
from typing import Final

#: Characters that the service keeps of a text.
LONGEST_MESSAGE: Final = 2_000
LONGEST_TYPE: Final = 200
#: Frames next to where it was raised; a recursion without end has a thousand.
_FRAMES: Final = 50


@dataclass(frozen=True, slots=True)
class Reason:
    """What is said of an exception."""

    type: str = ""
    message: str = ""
    fingerprint: str = ""


def reason_of(error: BaseException, *, message: bool = True, scrub: Callable[[str], str] | None = None) -> Reason:
    """What is to be said of an exception. Never raises.

    Args:
        error: the exception, with its traceback.
        message: whether its text may be told; it may quote what the message held.
        scrub: what takes out of the text what must not be told. One that raises takes all of it out.
    """
    name = type_of(error)
    text = ""
    if message:
        try:
            text = str(error) if scrub is None else scrub(str(error))
        except Exception:  # noqa: BLE001  # the exception's own words, or a scrubber's: neither may do harm
            text = "(its text could not be had)"
    return Reason(clean(name, LONGEST_TYPE), clean(text, LONGEST_MESSAGE), fingerprint(name, error.__traceback__))


def type_of(error: BaseException) -> str:
    """An exception's type, with its module unless it is Python's own."""
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def fingerprint(name: str, traceback: TracebackType | None) -> str:
    """16 hexadecimal digits that failures of one cause share.

    They are the SHA-256 of the type's name and of the innermost frames, each its file's name and its function: neither
    folders nor line numbers, so that a deployment, or a line more, changes nothing. Calls of a function by itself
    count once.
    """
    told = hashlib.sha256(name.encode(errors="replace"))
    for code in _innermost(traceback):
        told.update(f"\n{_file(code)}:{code.co_name}".encode(errors="replace"))
    return told.hexdigest()[:16]


def clean(text: str, longest: int) -> str:
    """A text that JSON and PostgreSQL can keep, of at most so many characters."""
    return text[:longest].replace("\0", "").encode(errors="replace").decode()


def _file(code: CodeType) -> str:
    return code.co_filename.replace("\\", "/").rpartition("/")[2]  # a Path would take longer than all the rest


def _innermost(traceback: TracebackType | None) -> Iterable[CodeType]:
    codes: deque[CodeType] = deque(maxlen=_FRAMES)
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not codes or codes[-1] is not code:
            codes.append(code)
        traceback = traceback.tb_next
    return codes
