"""Read the call log of the local SQS over HTTP, and set its fault plan."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

from redrive_service.sandbox.errors import SandboxError

_TIMEOUT = 30.0  # timeout in seconds; a page of 20,000 calls takes about 1


class CallsAreGone(SandboxError):
    """The local SQS does not keep the requested calls any more."""


def calls_since(endpoint: str, since: int) -> Iterator[dict[str, Any]]:
    """Yield the calls of the local SQS from number `since` to the latest call, in order.

    Raises:
        CallsAreGone: some of the calls are no longer kept.
    """
    while True:
        page = _ask(endpoint, f"calls?since={since}")
        if page["first"] > since:
            raise CallsAreGone(f"The local SQS no longer has its calls {since} to {page['first'] - 1}.")
        yield from page["calls"]
        since = page["next"]
        if since >= page["end"]:
            return


def next_call_number(endpoint: str) -> int:
    """Return the number that the next call in the call log will have. With it, `calls_since` reads only later calls."""
    return int(_ask(endpoint, "calls?since=999999999999999")["end"])


def plan_faults(endpoint: str, *faults: dict[str, object]) -> None:
    """Replace the fault plan of the local SQS, which says which faults it makes on purpose."""
    _ask(endpoint, "faults", method="PUT", body=json.dumps(faults).encode())


def _ask(endpoint: str, question: str, *, method: str = "GET", body: bytes | None = None) -> Any:  # noqa: ANN401  # JSON
    request = urllib.request.Request(f"{endpoint}/_sandbox/{question}", data=body, method=method)  # noqa: S310  # http
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:  # noqa: S310  # http
        return json.load(answer)
