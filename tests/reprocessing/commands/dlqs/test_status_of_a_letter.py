"""`redrive_status --message`: one letter, by any of its ids."""

from __future__ import annotations

import uuid

import pytest

from reprocessing.domain.ordering.placement import sort_key
from reprocessing.models import Attempt, Letter, Report
from tests.reprocessing.commands.conftest import AddRow, Ask, AskJson
from tests.reprocessing.commands.refusals import refusal
from tests.reprocessing.commands.stock import add_sent, add_source, ago

pytestmark = pytest.mark.django_db


@pytest.fixture
def sent(add_row: AddRow) -> Attempt:
    """A letter whose target took it an hour ago; it may come back for another."""
    return add_sent(add_source(add_row("orders"), window=7_200), taken_at=ago(hours=1), deadline=ago(hours=-1))


def test_a_letter_is_told_of_by_any_of_its_ids(sent: Attempt, ask: Ask, ask_json: AskJson) -> None:
    Letter.objects.update(sequence=sort_key("1"))
    letter = sent.letter
    names = (letter.message_id, str(letter.public_id), f"{letter.public_id}:1")
    found = [ask_json("redrive_status", "--message", one)["messages"] for one in names]
    assert [[one["message_id"] for one in some] for some in found] == [[letter.message_id]] * 3
    (told,) = found[0]
    assert (told["how"], told["worked"], told["state"], told["dlq"], told["sequence"]) == (
        "open", None, "awaiting", "orders", "1",
    )  # fmt: skip
    lines = ask("redrive_status", "orders", "--message", letter.message_id).splitlines()
    assert lines[0] == f"{letter.message_id}  of orders: awaiting outcome"
    assert lines[1].startswith("  Its outcome is not known yet: its target accepted it, and it may come back until 20")
    assert lines[2:] == [f"  redrive id  {letter.public_id}, 1 attempt", "  sequence    1"]


def test_a_delivery_that_nobody_confirmed_is_called_presumed(sent: Attempt, ask: Ask) -> None:
    Letter.objects.update(state="delivered", presumed=True, finished_at=ago(hours=0))
    lines = ask("redrive_status", "--message", sent.letter.message_id).splitlines()
    assert lines[0] == f"{sent.letter.message_id}  of orders: presumed delivered"


def test_why_it_failed_is_told_without_what_it_may_quote(sent: Attempt, ask: Ask) -> None:
    Report.objects.create(
        message_id=sent.sent_message_id, verdict="failed", type="KeyError", message="4111-canary", fingerprint="f1",
        happened_at=ago(hours=0), received_at=ago(hours=0), digest=b"1",
    )  # fmt: skip
    told = ask("redrive_status", "--message", sent.letter.message_id)
    assert told.splitlines()[4].endswith("by a consumer in this database: KeyError, f1")
    assert "4111-canary" not in told


def test_a_letter_that_is_not_known_or_of_another_dlq_is_said_to_be_none(sent: Attempt, add_row: AddRow) -> None:
    add_row("mail")
    for asked in (("m-none",), (str(uuid.UUID(int=7)),), (sent.letter.message_id, "mail")):
        assert "No message has the id" in refusal("redrive_status", "--message", *asked)
