"""Posts keep the contract of carriers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from reprocessing.domain.safety.url_policy import AllowList, allow_list
from reprocessing.domain.targets.async_sender import AsyncSender, HttpCall
from reprocessing.domain.targets.http_responses import StatusMeanings
from reprocessing.gateways.http import Posts
from tests.contract.carriers import LATE, SECRET, CarrierContract, Does, Road
from tests.nobody import nobody
from tests.reprocessing.gateways.http.stand_in import StandIn, answers, hangs, standing_in
from tests.reprocessing.web_servers import status

SCRIPTS = {
    "takes": answers(status(200, body=SECRET.encode())),
    "takes-late": answers(status(204), after=LATE),
    "fails": answers(status(500, body=SECRET.encode())),
    "asks-to-wait": answers(status(429, "Retry-After: 7", body=SECRET.encode())),
    "hangs": hangs,
    "breaks-off": answers(b"", closes=True),
}


class ToAnEndpoint(Road):
    def __init__(self, stand_in: StandIn, nobody: int) -> None:
        self.stand_in, self.nobody = stand_in, nobody
        self.made: list[Posts] = []

    def carrier(self, *, limit: int) -> AsyncSender[Any]:
        allowed = allow_list([f"127.0.0.1:{port}" for port in (self.stand_in.port, self.nobody)])
        assert isinstance(allowed, AllowList)
        self.made.append(Posts(allowed, limit=limit))
        return self.made[-1]

    def call(self, attempt: int, does: Does, *, timeout: float = 5.0) -> HttpCall:
        port = self.nobody if does is Does.IS_AWAY else self.stand_in.port
        url = f"http://127.0.0.1:{port}/{does.replace(' ', '-')}"
        return HttpCall(attempt, url, SECRET.encode(), (("X-Own", SECRET),), timeout, StatusMeanings())

    def asked(self) -> int:
        return len(self.stand_in.asked)

    def most_open(self) -> int:
        return self.stand_in.most_open


@pytest.fixture
def road() -> Iterator[ToAnEndpoint]:
    with standing_in(SCRIPTS) as stand_in, nobody() as port:
        made = ToAnEndpoint(stand_in, port)
        yield made
        for one in made.made:
            one.close()


class TestPosts(CarrierContract):
    """Over HTTP."""
