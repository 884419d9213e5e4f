"""Run Apprise in a child process: read one request from standard input, write one answer to standard output.

The process's environment has neither the database's password nor AWS's keys. Apprise's log may contain secret URLs, so
only an HTTP status or an error number is taken from the log.
"""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import sys
from collections.abc import Iterable
from typing import Any, Final

_STARTING: Final = 10  #: seconds after the timeout until the process ends itself, in case its parent is gone
_STATUS: Final = re.compile(r"(?:\berror=|Exception: \()([1-5][0-9]{2})\b")
_ERRNO: Final = re.compile(r"\[Errno (-?[0-9]{1,3})\]")
_TOO_LATE: Final = re.compile(r"(?i)timed out|did not finish within")
_CERTIFICATE: Final = re.compile(r"CERTIFICATE_VERIFY_FAILED")


def main() -> None:
    """Read a request from standard input, execute it, write the answer to standard output, and end the process."""
    answers = os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # discards what a plugin prints
    os.dup2(nowhere, 2)
    asked = json.loads(sys.stdin.read())
    signal.alarm(int(asked["seconds"]) + _STARTING)
    try:
        answer = {"why": _check(asked) if asked["check"] else _send(asked)}
    except Exception as error:  # noqa: BLE001  only the name of a plugin's error is reported
        answer = {"why": f"Apprise failed: {type(error).__name__}"}
    answers.write(json.dumps(answer))
    answers.flush()
    os._exit(0)  # does not wait for threads of Apprise


def _service(asked: dict[str, Any]) -> Any:  # noqa: ANN401  # a plugin of Apprise, which has no stubs
    import apprise  # noqa: PLC0415  # the parent imports this file to find it, and must not load Apprise

    asset = apprise.AppriseAsset(
        app_id="redrive-service",
        async_mode=False,
        secure_logging=True,
        service_timeout=asked["seconds"],
        storage_mode=apprise.PersistentStoreMode.MEMORY,
    )
    return apprise.Apprise.instantiate(asked["url"], asset=asset, suppress_exceptions=True)


def _check(asked: dict[str, Any]) -> str:
    return "" if _service(asked) is not None else "Apprise cannot read its URL"


def _send(asked: dict[str, Any]) -> str:
    """Send the notification's text with Apprise. Return why this failed; empty: it succeeded."""
    import apprise  # noqa: PLC0415  # the parent must not load Apprise

    service = _service(asked)
    if service is None:
        return "Apprise cannot read its URL"
    if "overflow=" not in asked["url"]:
        service.overflow_mode = apprise.OverflowMode.SPLIT  # else a service with a lower limit refuses the text
    logging.getLogger("apprise").setLevel(logging.DEBUG)  # Apprise logs why a send failed below the level of warnings
    everything = apprise.Apprise()
    everything.add(service)
    result = everything.notify(
        title=asked["title"],
        body=asked["body"],
        notify_type=asked["tone"],
        body_format=apprise.NotifyFormat.TEXT,
        timeout=asked["seconds"],
        log_level=logging.DEBUG,
    )
    return "" if result else _why(entry.message for entry in result.logs() if _speaks_of_failure(entry))


def _speaks_of_failure(entry: Any) -> bool:  # noqa: ANN401  # of Apprise, which has no stubs
    """Return whether a log entry of Apprise is about a failed send.

    All other entries are ignored, because they may contain the notification's text.
    """
    return entry.level in {"WARNING", "ERROR"} or entry.message.startswith(("Socket Exception", "SMTP"))


def _why(messages: Iterable[str]) -> str:
    """Return in words why sending failed, from Apprise's log entries.

    Only numbers are taken from the entries, because their texts may contain secrets.
    """
    said = "\n".join(messages)
    if found := _STATUS.search(said):
        return f"it answered {found[1]}"
    if _CERTIFICATE.search(said):
        return "its certificate is invalid"
    if found := _ERRNO.search(said):
        number = int(found[1])
        return os.strerror(number).lower() if number > 0 else "its host could not be resolved"
    if _TOO_LATE.search(said):
        return "it did not answer in time"
    return "Apprise could not send it, and says no more that can be shown"


if __name__ == "__main__":
    main()
