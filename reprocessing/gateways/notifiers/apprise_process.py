"""Send a notification's text with Apprise, in a child process that is killed after a timeout.

Apprise loads two hundred modules, logs what it sends, and has a different time limit for each service. In a separate
process it uses no memory of a worker, writes no logs, and blocks no task (docs/adr/0034).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from reprocessing.domain.notifications.delivery import Delivery, Failed, Sent
from reprocessing.domain.notifications.destination import AppriseService
from reprocessing.domain.notifications.text import Text

_PROGRAM: Final = Path(__file__).with_name("apprise_child.py")
#: Seconds that are added to the time limit, because Python and Apprise have to start first.
_STARTING: Final = 10.0
#: Environment variables that the process gets: proxies, certificates, PATH, locale. The service's secrets are not
#: among them.
_PASSED_ON: Final = (
    "PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "SYSTEMROOT", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE",
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
)  # fmt: skip


def send(service: AppriseService, text: Text, *, seconds: float) -> Delivery:
    """Send a notification's text. Return Sent, or Failed with the reason; nothing is raised.

    Args:
        service: the destination.
        text: the text to send.
        seconds: how long the destination may take.
    """
    why = _ask(
        {"url": service.url, "title": text.title, "body": text.body, "tone": text.tone.value, "check": False}, seconds
    )
    return Failed(why) if why else Sent()


def problem(service: AppriseService, *, seconds: float) -> str:
    """Return what is wrong with the destination's URL; empty if Apprise can read the URL. Nothing is sent."""
    return _ask({"url": service.url, "check": True}, seconds)


def _ask(request: dict[str, Any], seconds: float) -> str:
    """Run the child process with a request. Return why the request failed; empty if it succeeded."""
    asked = json.dumps(request | {"seconds": seconds})
    kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    try:
        ended = subprocess.run(
            [sys.executable, "-I", str(_PROGRAM)], input=asked, env=kept, cwd="/", text=True, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, timeout=seconds + _STARTING, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:  # run() has killed the process
        return f"it had not answered within {seconds:g} s"
    except OSError as error:
        return f"the process of Apprise did not start: {error.strerror or type(error).__name__}"
    return _reason(ended.stdout)


def _reason(answer: str) -> str:
    try:
        why = json.loads(answer)["why"]
    except (ValueError, TypeError, KeyError):
        return "the process of Apprise ended without an answer"
    return str(why)
