"""Count a drain's SQS calls in the local SQS's call log, and check that each letter was sent once, in order."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks.drains.drain_plan import Plan

#: Calls of a consumer on the source queue; all other calls on this queue are the service's.
CONSUMING: Final = ("ReceiveMessage", "DeleteMessageBatch", "ChangeMessageVisibilityBatch")


@dataclass(slots=True)
class SqsCalls:
    """The SQS calls of one round, whose first letter was sent at `first_sent`.

    `last_full`: time of the last receive before the first send that found messages in the DLQ; `last_receive`: time of
    the last receive of all, in seconds since 1970. `latest`: the number of the letter sent last, by key.
    `sends`: how often each body was sent, by its MD5. `dropped`: sends that a FIFO queue dropped as
    duplicates. `out_of_order`: sends after a later letter of their key.
    """

    first_sent: float
    calls: int = 0
    last_full: float = 0.0
    last_receive: float = 0.0
    sends: dict[str, int] = field(default_factory=dict)
    dropped: int = 0
    out_of_order: int = 0
    latest: dict[str, int] = field(default_factory=dict)

    def add(self, call: Mapping[str, Any], *, of_dlq: bool) -> None:
        """Add a call to the counts. `of_dlq`: it is a call for the DLQ, not for the source queue."""
        if not of_dlq and call["action"] in CONSUMING:
            return
        self.calls += 1
        if of_dlq and call["action"] == "ReceiveMessage":
            self.last_receive = call["at"]
            if call["received"] and call["at"] < self.first_sent:
                self.last_full = call["at"]
        for sent in call["sent"]:
            if sent["accepted"] and not of_dlq:
                self._note(sent)

    def _note(self, sent: Mapping[str, Any]) -> None:
        self.sends[sent["md5"]] = self.sends.get(sent["md5"], 0) + 1
        self.dropped += sent["duplicate"]
        key, number = sent["attributes"]["account"], int(sent["attributes"]["sequence"])
        self.out_of_order += number < self.latest.get(key, -1)
        self.latest[key] = number

    def silence(self) -> float:
        """Return the seconds before the first send in which receives from the DLQ found nothing."""
        return max(0.0, min(self.first_sent, self.last_receive) - self.last_full)

    def check(self, plan: Plan, first: int) -> None:
        """End the program unless every letter, from number `first`, was sent once, or twice if it failed, in order."""
        sends, wanted = sum(self.sends.values()), plan.sends(first)
        if (len(self.sends), sends, self.dropped) != (plan.letters, wanted, 0):
            raise SystemExit(
                f"{sends:,} sends of {len(self.sends):,} letters were accepted, {self.dropped:,} of them dropped by a "
                f"FIFO queue, for {plan.letters:,} letters and {wanted:,} sends: some were lost or sent again."
            )
        if plan.is_ordered and self.out_of_order:
            raise SystemExit(f"{self.out_of_order:,} letters were sent after a later letter of their key.")


class CallLog:
    """The local SQS's log of calls, and its setting that slows calls down."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._mark = 0

    @contextmanager
    def slow(self, milliseconds: int) -> Iterator[None]:
        """Let each SQS call in the block take `milliseconds` longer, up to a fifth more or less."""
        delay = {"kind": "delay", "milliseconds": milliseconds, "jitter": milliseconds // 5}
        self._control("PUT", "faults", [delay] if milliseconds else [])
        try:
            yield
        finally:
            self._control("DELETE", "faults")

    def begin(self) -> None:
        """Begin to count SQS calls; earlier calls do not count."""
        self._mark = self._control("GET", f"calls?since={10**12}")["end"]

    def count(self, dlq: str, source: str, first_sent: float) -> SqsCalls:
        """Return the counted calls since `begin` on these two queues (URLs)."""
        counts, names = SqsCalls(first_sent), {url.rsplit("/", 1)[1]: url == dlq for url in (dlq, source)}
        for call in self._calls():
            if call["queue"] in names:
                counts.add(call, of_dlq=names[call["queue"]])
        return counts

    def _calls(self) -> Iterator[dict[str, Any]]:
        since, end = self._mark, self._mark + 1
        while since < end:
            page = self._control("GET", f"calls?since={since}")
            if page["first"] > since:
                raise SystemExit("The call log is too short for this drain: its first calls are lost.")
            yield from page["calls"]
            since, end = page["next"], page["end"]

    def _control(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - JSON
        sent = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._endpoint}/_sandbox/{path}", data=sent, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)
