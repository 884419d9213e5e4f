"""What cannot be the value of a setting is named, and no secret is shown."""

from __future__ import annotations

import pytest

from reprocessing.conf import Conf
from reprocessing.domain.configuration.setting_problems import problems

URL = "mailto://user:hunter2@example.com"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("OUTBOUND_HOSTS", "status.example.com", "it must be a list of hosts"),
        ("OUTBOUND_HOSTS", [1], "it must be a list of hosts"),
        ("OUTBOUND_HOSTS", ["ok.example", "https://a.example.com"], "OUTBOUND_HOSTS: entry 2: it is not a network; "),
        ("COLOUR", "pink", "COLOUR is 'pink'; it must be one of red, amber, green, blue, violet, grey."),
        ("COLOUR", 1, "COLOUR is 1; it must be one of"),
        ("PLACE", "x" * 41, "it must be a printable text of at most 40 characters"),
        ("PLACE", None, "PLACE is None; it must be a printable text"),
        ("OWN_QUEUES", "https://sqs/1/a", "it must be a list of queue URLs"),
        ("OWN_QUEUES", ["redrive-control"], "it must be a list of queue URLs"),
        ("SECRETS", ["s" * 24], "must be a mapping of names to texts"),
        ("SECRETS", {"orders": "s" * 23}, "orders is shorter than 24 bytes"),
        ("SECRETS", {"orders": 5}, "must be a mapping of names to texts"),
        ("SECRETS", {"s" * 65: "s" * 24}, "the name of a secret takes 1 to 64"),
        ("SECRETS", {"orders": "whsec_sss"}, "orders begins with whsec_, but the rest is not base64"),
        ("DESTINATIONS", {"Ops!": URL}, "DESTINATIONS has 'Ops!'; a name is lower case"),
        ("DESTINATIONS", [URL], "DESTINATIONS must be a mapping of names to URLs"),
        ("PUBLIC_URL", "ftp://x", "PUBLIC_URL is 'ftp://x'; it must be a URL without a path"),
        ("PRICE_FIFO", -1, "PRICE_FIFO is -1; it must be a number from 0 to 1,000"),
    ],
    ids=str,
)
def test_what_cannot_be_used_is_named_and_no_secret_is_shown(name: str, value: object, said: str) -> None:
    (problem,) = problems(name, value, getattr(Conf(), name.lower()))
    assert said in problem
    assert ("sss" in problem, "hunter2" in problem) == (False, False)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LEASE", 8),
        ("MARKS", {"redrive": "Id", "message_id": None}),
        ("PLACE", "test"),
        ("COLOUR", "red"),
        ("TRACES", True),
        ("OWN_QUEUES", ["https://sqs/1/a"]),
        ("OUTBOUND_HOSTS", ["10.0.0.0/8"]),
        ("SECRETS", {"orders": "s" * 24}),
    ],
    ids=str,
)
def test_a_value_that_can_be_used_has_no_problem(name: str, value: object) -> None:
    assert list(problems(name, value, getattr(Conf(), name.lower()))) == []
