"""A destination is read from a URL, or refused with what to write and without showing the URL."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from reprocessing.domain.notifications.destination import (
    SCHEMAS,
    AppriseService,
    Destination,
    SignedWebhook,
    SnsTopic,
    Unusable,
    is_name,
    read_destination,
)
from reprocessing.domain.safety.url_policy import AllowList

SECRET = "hunter2"
KEYS = {"ops": b"k" * 32}


def read(url: str) -> Destination | Unusable:
    return read_destination(url, KEYS, AllowList())


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("mailto://user:hunter2@example.com", AppriseService),
        ("sns:arn:aws:sns:eu-west-1:000000000000:hunter2", SnsTopic),
        ("webhook+https://hooks.example.com/hunter2?x=1#secret=ops", SignedWebhook),
        ("webhook+http://127.0.0.1:8080/hunter2#secret=ops", SignedWebhook),  # plain http only to an address
    ],
)
def test_each_kind_of_destination_is_read_and_does_not_show_its_url(url: str, kind: type) -> None:
    found = read(url)
    assert isinstance(found, kind)
    assert not isinstance(found, Unusable)
    assert SECRET not in repr(found) + found.kind


def test_the_url_and_the_key_of_a_webhook_are_taken_apart() -> None:
    webhook = read("webhook+https://hooks.example.com/redrive?x=1#secret=ops")
    assert isinstance(webhook, SignedWebhook)
    assert (webhook.url, webhook.secret, webhook.key) == ("https://hooks.example.com/redrive?x=1", "ops", b"k" * 32)
    assert read("sns:arn:aws:sns:eu-west-1:0:alerts") == SnsTopic("arn:aws:sns:eu-west-1:0:alerts")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("hunter2", "neither sns:ARN, nor"),
        ("mailto://hunter2 @example.com", "a space or an invisible character"),
        ("slack://hunter2\n", "a space or an invisible character"),
        ("mailto://" + "hunter2" * 1_000, "longer than 4,000 characters"),
        ("file:///hunter2", "its schema is not allowed"),
        ("syslog://hunter2", "its schema is not allowed"),
        ("dbus://hunter2", "its schema is not allowed"),
        ("macosx://hunter2", "its schema is not allowed"),
        ("https://hooks.example.com/hunter2", "it would be posted unsigned"),
        ("sns://hunter2", "needs AWS keys for SNS; write sns:ARN"),
        ("sns:arn:aws:sqs:eu-west-1:000000000000:hunter2", "is not the ARN of an SNS topic"),
        ("sns:arn:aws:sns:eu-west-1:000000000000:hunter2.fifo", "it is a FIFO topic"),
        ("webhook+https://hooks.example.com/hunter2", "end it with #secret=NAME"),
        ("webhook+https://hooks.example.com/hunter2#secret=", "end it with #secret=NAME"),
        ("webhook+https://hooks.example.com/hunter2#secret=another", "is not in REDRIVE_SECRETS"),
        ("webhook+https://user:hunter2@hooks.example.com/#secret=ops", "is not a URL such as"),
        ("webhook+ftp://hunter2/#secret=ops", "is not a URL such as"),
        ("webhook+http://hooks.example.com/hunter2#secret=ops", "plain http can be read by others"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_without_a_word_of_it(url: str, why: str) -> None:
    found = read(url)
    assert isinstance(found, Unusable)
    assert why in found.why
    assert SECRET not in found.why


@pytest.mark.parametrize("schema", ["json", "jsons", "xml", "xmls", "form", "forms", "http", "https"])
def test_a_url_to_which_apprise_posts_unsigned_is_refused(schema: str) -> None:
    assert read(f"{schema}://a") == Unusable("it would be posted unsigned; write webhook+https://HOST/PATH#secret=NAME")


def test_each_reason_is_a_whole_sentence() -> None:
    urls = [
        "x", " ", "sns:x", "sns:arn:aws:sns:eu-west-1:000000000000:a.fifo", "webhook+https://a/", "json://a", "sns://a",
        "webhook+https://a/#secret=x", "webhook+ftp://a/#secret=ops", "webhook+http://a.example/#secret=ops", "file://a",
    ]  # fmt: skip
    assert [read(url) for url in urls] == [
        Unusable(why)
        for why in (
            "it is neither sns:ARN, nor webhook+https://HOST/PATH#secret=NAME, nor a URL of Apprise",
            "it contains a space or an invisible character, or is longer than 4,000 characters",
            "the text after sns: is not the ARN of an SNS topic: sns:arn:aws:sns:REGION:ACCOUNT:TOPIC",
            "it is a FIFO topic, which people cannot subscribe to; use a standard topic",
            "it names no signing secret; end it with #secret=NAME, where NAME is in REDRIVE_SECRETS",
            "it would be posted unsigned; write webhook+https://HOST/PATH#secret=NAME",
            "Apprise needs AWS keys for SNS; write sns:ARN instead, which uses the service's own role",
            "the secret that it names is not in REDRIVE_SECRETS; add NAME=whsec_… there",
            "the text after webhook+ is not a URL such as https://hooks.example.com/redrive, or has credentials",
            "plain http can be read by others; use https, or the IP address of a host in your own network",
            "its schema is not allowed; docs/notifications.md lists the allowed ones",
        )
    ]


@pytest.mark.parametrize(
    ("name", "good"),
    [("ops", True), ("team-a2", True), ("", False), ("Team", False), ("a--b", False), ("2a", False), ("a" * 41, False)],
)
def test_names_are_lower_case_digits_and_hyphens(name: str, good: bool) -> None:
    assert is_name(name) is good


@pytest.mark.soak
def test_apprise_knows_every_schema_that_is_allowed() -> None:
    asking = "import json; from apprise.apprise import N_MGR; print(json.dumps(sorted(N_MGR.schemas())))"
    known = json.loads(subprocess.check_output([sys.executable, "-c", asking], text=True, stderr=subprocess.DEVNULL))
    assert SCHEMAS - set(known) == frozenset()


def test_no_schema_that_runs_locally_or_posts_unsigned_is_allowed() -> None:
    ours = {"dbus", "gnome", "glib", "qt", "kde", "macosx", "windows", "syslog", "rsyslog", "file", "blink1", "json"}
    assert SCHEMAS & ours == frozenset()
