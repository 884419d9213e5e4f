"""Posts to a stand-in under a name, as targets are posted to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from ssl import SSLContext

from reprocessing.domain.replay.verdicts import Outcome
from reprocessing.domain.safety.url_policy import AllowList, allow_list
from reprocessing.domain.targets.async_sender import HttpCall
from reprocessing.domain.targets.http_responses import StatusMeanings
from reprocessing.gateways.http import Network, Posts
from tests.contract.carriers import all_ended, always

NAME = "hooks.test"
NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


def listed(*entries: str) -> AllowList:
    made = allow_list(entries)
    assert isinstance(made, AllowList)
    return made


@contextmanager
def posting(
    port: int, *, resolve: Callable[[str, int], Sequence[str]] = lambda _host, _port: ["127.0.0.1"],
    tls: SSLContext | None = None, limit: int = 500,
) -> Iterator[Posts]:  # fmt: skip
    """Posts that may go to the name at this port, which stands for loopback."""
    allowed = listed(f"{NAME}:{port}", "127.0.0.0/8")
    made = Posts(allowed, Network(resolve, tls), limit, lambda: NOW)
    try:
        yield made
    finally:
        made.close()


def post(  # noqa: PLR0913 - what makes a post
    port: int, path: str = "/200", *, attempt: int = 1, body: bytes = b'{"order": 1}', timeout: float = 5.0,
    headers: tuple[tuple[str, str], ...] = (), scheme: str = "http", answers: StatusMeanings = StatusMeanings(),  # noqa: B008
) -> HttpCall:  # fmt: skip
    return HttpCall(attempt, f"{scheme}://{NAME}:{port}{path}", body, headers, timeout, answers)


def become(posts: Posts, *calls: HttpCall) -> list[Outcome]:
    posts.start(calls, may_start=always)
    return [outcome for _, outcome in all_ended(posts)]
