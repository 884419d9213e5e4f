"""Describe how attempts failed, by a status, a code or an unreachable target, without quoting a message."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Final

from reprocessing.domain.lifecycle import AttemptOutcome
from reprocessing.domain.message.safe_text import visible

_LATER: Final = re.compile(r"it answered ([2-5][0-9]{2})\b")
_CODE: Final = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_SAID: Final = {
    AttemptOutcome.RETURNED: "they came back to the DLQ",
    AttemptOutcome.FAILED: "their consumer reported that they failed",
    AttemptOutcome.SILENT: "their consumer did not report in time",
}


def in_words(outcome: str, said: str) -> str:
    """Return in words how attempts with the same outcome failed, such as "503 Service Unavailable".

    Args:
        outcome: an `AttemptOutcome`.
        said: for a refused attempt, the target's error code, without its error text, which may quote a message. For an
            attempt that was not sent or got no answer, the reason.
    """
    if known := _SAID.get(AttemptOutcome(outcome)):
        return known
    if outcome == AttemptOutcome.REFUSED:
        return _coded(said) if _CODE.fullmatch(said) else "their target refused them"
    later = _LATER.match(said)
    return _coded(later[1]) if later else visible(said) or "there was no answer"


def _coded(code: str) -> str:
    try:
        return f"{code} {HTTPStatus(int(code)).phrase}"
    except ValueError:
        return code
