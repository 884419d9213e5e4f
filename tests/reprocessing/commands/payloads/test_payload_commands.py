from __future__ import annotations

from pathlib import Path

import pytest
from django.core import checks
from django.core.management import CommandError

from reprocessing import conf
from reprocessing.checks import NOT_ENCRYPTED, payloads_are_encrypted
from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.maintenance.findings import FindingSeverity
from reprocessing.models import AuditEntry, DeadLetterQueue, Letter, Payload, PayloadKey
from reprocessing.pipeline.maintenance.doctor import payloads
from tests.reprocessing.commands.conftest import Ask, AskJson
from tests.reprocessing.commands.stock import add_letter, add_source
from tests.reprocessing.payload_rings import NEW, OLD, Rings

pytestmark = pytest.mark.django_db
DOCS = Path(__file__).parents[4] / "docs"
WHY = ("--reason", "a test", "--by", "ann")


@pytest.fixture
def letter(orders: DeadLetterQueue) -> Letter:
    return add_letter(add_source(orders), LetterState.PARKED, body=b"canary", ordering_key="customer-4711")


def test_rotation_needs_keys_and_says_how_to_make_one(ask: Ask, rings: Rings) -> None:
    rings()
    with pytest.raises(CommandError, match="openssl rand -base64 32"):
        ask("rotate_payload_keys", *WHY)


def test_rotation_is_a_dry_run_then_seals_and_is_recorded(
    ask: Ask, ask_json: AskJson, letter: Letter, rings: Rings
) -> None:
    rings(OLD)
    assert "This was a dry run" in ask("rotate_payload_keys", "--seal-readable", *WHY)
    assert bytes(Payload.objects.get().body) == b"canary"
    said = ask("rotate_payload_keys", "--seal-readable", *WHY, "--confirm")
    assert "Encrypted: 1 payloads, 0 edits, 0 texts." in said
    assert b"canary" not in bytes(Payload.objects.get().body)
    rings(NEW, OLD)
    told = ask_json("rotate_payload_keys", *WHY, "--confirm")
    assert (told["keys"], told["keys_in_use"]) == (PayloadKey.objects.count(), ["new"])
    assert [entry.after["to"] for entry in AuditEntry.objects.filter(act="rotated").order_by("pk")] == ["old", "new"]


def test_shredding_is_a_dry_run_then_destroys(ask: Ask, ask_json: AskJson, letter: Letter, encrypted: Rings) -> None:
    assert "1 payloads of orders and 0 data keys would be destroyed." in ask("shred_payloads", "orders", *WHY)
    assert Payload.objects.count() == 1
    told = ask_json("shred_payloads", "orders", *WHY, "--confirm")
    assert (told["messages"], Payload.objects.count(), Letter.objects.get().state) == (1, 0, "discarded")


def test_single_messages_are_shredded_by_id(ask: Ask, letter: Letter) -> None:
    with pytest.raises(CommandError, match="orders has no message nobody"):
        ask("shred_payloads", "orders", "--message-id", "nobody", *WHY, "--confirm")
    ask("shred_payloads", "orders", "--message-id", letter.message_id, *WHY, "--confirm")
    assert Payload.objects.count() == 0


def test_messages_in_progress_are_named_and_not_shredded(ask: Ask, orders: DeadLetterQueue) -> None:
    waiting = add_letter(add_source(orders), LetterState.WAITING)
    for which in ((), ("--message-id", waiting.message_id)):
        with pytest.raises(CommandError, match="are queued, or are being sent"):
            ask("shred_payloads", "orders", *which, *WHY, "--confirm")
    assert Payload.objects.count() == 1


def test_an_erasure_is_a_dry_run_then_erases(ask: Ask, ask_json: AskJson, letter: Letter) -> None:
    where = ("--where", "key=customer-4711", "--where", "dlq=orders")
    assert "1 messages match, 0 of them in progress." in ask("erase", *where, *WHY)
    assert Payload.objects.count() == 1
    told = ask_json("erase", *where, *WHY, "--confirm")
    assert (told["finished"], told["counts"]["payloads"], Letter.objects.get().ordering_key) == (True, 1, None)
    assert "0 messages match" in ask("erase", *where, *WHY)


def test_an_erasure_that_leaves_messages_in_progress_fails_and_says_what_to_do(
    ask: Ask, orders: DeadLetterQueue
) -> None:
    add_letter(add_source(orders), LetterState.WAITING, ordering_key="customer-4711")
    with pytest.raises(CommandError, match="run the same command again"):
        ask("erase", "--where", "key=customer-4711", *WHY, "--confirm")


@pytest.mark.parametrize("where", ["key", "key=", "nobody=4711", "key=abc"], ids=str)
def test_a_useless_condition_is_refused(ask: Ask, where: str) -> None:
    with pytest.raises(CommandError):
        ask("erase", "--where", where, *WHY)


def test_the_doctor_says_whether_payloads_are_encrypted(letter: Letter, rings: Rings, ask: Ask) -> None:
    def told() -> list[str]:
        return [one.what for one in payloads.findings(conf.current())]

    rings()
    (note,) = payloads.findings(conf.current())
    assert (note.severity, note.what) == (
        FindingSeverity.NOTE, "They are stored readable in PostgreSQL, since REDRIVE_PAYLOAD_KEYS is not set.",
    )  # fmt: skip
    (information,) = payloads_are_encrypted(None)
    assert (information.id, information.level) == (NOT_ENCRYPTED, checks.INFO)
    page = (DOCS / "payloads.md").read_text()
    assert f"shows an information (`{NOT_ENCRYPTED}`), and `redrive_doctor` a note." in page
    rings(OLD)
    ask("rotate_payload_keys", "--seal-readable", *WHY, "--confirm")
    assert told() == ["encrypted with the key old."]
    rings(NEW, OLD)
    assert told() == ["old still wraps data keys, not only new.", "encrypted with the key new."]
    rings(NEW)
    assert told()[0] == "REDRIVE_PAYLOAD_KEYS lacks old, with which messages are encrypted."
