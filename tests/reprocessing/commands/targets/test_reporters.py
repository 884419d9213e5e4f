"""Reporters are added, changed, revoked and listed; their tokens are shown once and kept nowhere."""

from __future__ import annotations

import pytest

from reprocessing.models import AuditEntry, Reporter
from reprocessing.store.outcomes import reporters
from tests.reprocessing.commands.conftest import AddRow, Ask, AskJson
from tests.reprocessing.commands.refusals import refusal
from tests.reprocessing.commands.stock import add_source

pytestmark = pytest.mark.django_db

ARN = "arn:aws:sqs:us-east-1:000000000000:shop"


@pytest.fixture(autouse=True)
def _targets(add_row: AddRow) -> None:
    dlq = add_row("orders")
    for name in ("shop", "mail"):
        add_source(dlq, name)


def test_the_token_that_is_printed_is_the_reporter_s_and_is_kept_nowhere(ask: Ask, ask_json: AskJson) -> None:
    assert ask("add_reporter", "shop-worker", "--target", "shop").splitlines() == [
        f"shop-worker may report outcomes of messages sent to: {ARN}",
        "This was a dry run: shop-worker is added with --confirm.",
    ]
    assert (Reporter.objects.count(), AuditEntry.objects.count()) == (0, 0)
    told = ask_json("add_reporter", "shop-worker", "--target", ARN, "--by", "ann", "--reason", "why", "--confirm")
    token = told.pop("token")
    assert told == {"reporter": "shop-worker", "dry_run": False, "new": True, "targets": [ARN]}
    row = Reporter.objects.get()
    assert (reporters.by_token(token), row.added_by) == (row, "ann")
    assert token.encode() not in bytes(row.token_hash)
    review = AuditEntry.objects.get()
    assert (review.act, review.by, review.reason) == ("added", "ann", "why")
    assert review.after == {"reporter": "shop-worker", "targets": [ARN], "revoked": False, "token": "new"}


def test_a_reporter_that_is_there_keeps_its_token_unless_it_is_to_get_another(ask: Ask, ask_json: AskJson) -> None:
    first = ask_json("add_reporter", "worker", "--target", "shop", "--confirm")["token"]
    told = ask_json("add_reporter", "worker", "--target", "shop", "--target", "mail", "--confirm")
    assert (told["new"], told["token"], len(told["targets"])) == (False, None, 2)
    assert reporters.by_token(first) is not None
    told = ask("add_reporter", "worker", "--new-token", "--confirm")
    assert told.splitlines()[1:3] == ["worker is changed.", "Its token, which is not shown again:"]
    assert (reporters.by_token(first), Reporter.objects.get().targets.count()) == (None, 2)
    assert list(AuditEntry.objects.order_by("id").values_list("act", flat=True)) == ["added", "changed", "changed"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ((), "could not report on any message. Name its targets: --target ARN."),
        (("--target", "hats"), 'No target is named "hats". There are: arn:aws:sqs:us-east-1:000000000000:mail, arn'),
    ],
)
def test_a_reporter_speaks_of_something(given: tuple[str, ...], why: str) -> None:
    assert why in refusal("add_reporter", "worker", *given, "--confirm")
    assert Reporter.objects.count() == 0


def test_a_reporter_is_revoked_once_and_heard_again_with_a_new_token_alone(ask: Ask) -> None:
    revoke = ("revoke_reporter", "worker", "--reason", "it left")
    cure = "None has been added yet. Add one: manage.py add_reporter NAME --target TARGET --confirm"
    assert cure in refusal(*revoke)
    ask("add_reporter", "worker", "--target", "shop", "--confirm")
    assert ask(*revoke) == "This was a dry run: worker is revoked with --confirm.\n"
    assert ask(*revoke, "--confirm") == "worker is revoked.\n"
    assert ask(*revoke, "--confirm") == "worker was revoked already: nothing to change.\n"
    assert [one.after["revoked"] for one in AuditEntry.objects.order_by("id")] == [False, True]
    said = refusal("add_reporter", "worker", "--target", "mail", "--confirm")
    assert (said.startswith("worker was revoked."), "create a new token: --new-token." in said) == (True, True)
    ask("add_reporter", "worker", "--new-token", "--confirm")
    assert Reporter.objects.get().revoked_at is None


def test_reporters_are_listed(ask: Ask, ask_json: AskJson) -> None:
    none = "No reporter has been added yet. Add one: manage.py add_reporter NAME --target TARGET --confirm\n"
    assert ask("list_reporters") == none
    ask("add_reporter", "worker", "--target", "shop", "--by", "ann", "--confirm")
    (found,) = ask_json("list_reporters")["reporters"]
    assert (found["reporter"], found["targets"], found["added_by"]) == ("worker", [ARN], "ann")
    assert (found["revoked_at"], found["last_heard_at"]) == (None, None)
    assert ask("list_reporters").splitlines()[1].endswith(f" by ann  never        {ARN}")
