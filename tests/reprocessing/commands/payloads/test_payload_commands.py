from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from django.core import checks
from django.core.management import CommandError

from reprocessing import conf
from reprocessing.checks import NOT_ENCRYPTED, payloads_are_encrypted
from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.maintenance.findings import FindingSeverity
from reprocessing.domain.payloads import sealing
from reprocessing.models import AuditEntry, DeadLetterQueue, Erasure, Letter, Payload, PayloadKey
from reprocessing.pipeline.maintenance.doctor import payloads
from reprocessing.store.payloads import content, payload_keys
from tests.reprocessing.commands.conftest import Ask, AskJson
from tests.reprocessing.commands.stock import add_letter, add_source
from tests.reprocessing.payload_rings import NEW, OLD, WRONG_OLD, Rings

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


def test_rotation_does_not_say_that_a_key_can_be_removed_before_every_process_was_restarted(
    ask: Ask, letter: Letter, rings: Rings
) -> None:
    rings(OLD)
    ask("rotate_payload_keys", "--seal-readable", *WHY, "--confirm")
    rings(NEW, OLD)
    said = ask("rotate_payload_keys", *WHY, "--confirm")
    assert "No data key is wrapped by another key than new now." in said
    assert "when every process has been restarted with new first, and redrive_doctor, run after that" in said


@pytest.mark.parametrize("confirm", [(), ("--confirm",)], ids=["dry run", "confirmed"])
def test_rotation_refuses_a_wrong_key_under_the_right_name(
    ask: Ask, letter: Letter, encrypted: Rings, confirm: tuple[str, ...]
) -> None:
    content.sealer_of(letter.dlq_id, date(2026, 3, 1))
    encrypted(WRONG_OLD)
    with pytest.raises(CommandError, match="Nothing was done: The payload key old does not fit"):
        ask("rotate_payload_keys", *WHY, *confirm)


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


def test_a_message_that_is_shredded_again_is_named_and_not_recorded_again(ask: Ask, letter: Letter) -> None:
    again = ("shred_payloads", "orders", "--message-id", letter.message_id, *WHY)
    assert "1 payloads of orders" in ask(*again, "--confirm")
    for confirm in ((), ("--confirm",)):
        said = f"Destroyed before, so nothing is left to destroy: {letter.message_id}.\n"
        assert ask(*again, *confirm) == said
    assert AuditEntry.objects.filter(act="shredded").count() == 1


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
    assert AuditEntry.objects.filter(act="erased", letter=None).count() == 1


def test_an_erasure_of_a_short_key_says_that_texts_stay(ask: Ask, ask_json: AskJson, letter: Letter) -> None:
    Letter.objects.update(ordering_key="42")
    said = "Only whole keys and values {} replaced: reasons, notes and other texts may still have the value."
    assert said.format("are") in ask("erase", "--where", "key=42", *WHY)
    assert ask_json("erase", "--where", "key=42", *WHY)["texts_searched"] is False
    assert said.format("were") in ask("erase", "--where", "key=42", *WHY, "--confirm")
    assert Payload.objects.count() == 0


@pytest.mark.parametrize("confirm", [(), ("--confirm",)], ids=["dry run", "confirmed"])
def test_an_erasure_that_matches_nothing_is_refused_and_certifies_nothing(
    ask: Ask, letter: Letter, confirm: tuple[str, ...]
) -> None:
    with pytest.raises(CommandError, match="Nothing was done: no message matches --where"):
        ask("erase", "--where", "key=customer-4712", *WHY, *confirm)
    assert (Erasure.objects.count(), AuditEntry.objects.count(), Payload.objects.count()) == (0, 0, 1)


def test_an_erasure_that_leaves_messages_in_progress_fails_and_says_what_to_do(
    ask: Ask, orders: DeadLetterQueue
) -> None:
    add_letter(add_source(orders), LetterState.WAITING, ordering_key="customer-4711")
    with pytest.raises(CommandError, match="run the same command again"):
        ask("erase", "--where", "key=customer-4711", *WHY, "--confirm")


@pytest.mark.parametrize("where", ["key", "key=", "nobody=4711", "text=abc", "q=abc"], ids=str)
def test_a_useless_condition_is_refused(ask: Ask, where: str) -> None:
    with pytest.raises(CommandError):
        ask("erase", "--where", where, *WHY)


def test_the_doctor_says_whether_payloads_are_encrypted(letter: Letter, rings: Rings, ask: Ask) -> None:
    def told() -> list[str]:
        return [one.what for one in payloads.findings(conf.current())]

    rings()
    (note,) = payloads.findings(conf.current())
    assert (note.severity, note.what) == (
        FindingSeverity.NOTE, "Payloads are stored readable in PostgreSQL, since REDRIVE_PAYLOAD_KEYS is not set.",
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
    assert told() == ["REDRIVE_PAYLOAD_KEYS lacks old, with which messages are encrypted (data keys: 2)."]


def _findings() -> list[tuple[str, str]]:
    return [(one.severity.value, one.what) for one in payloads.findings(conf.current())]


def test_the_doctor_without_keys_says_that_payloads_are_encrypted(letter: Letter, encrypted: Rings) -> None:
    content.sealer_of(letter.dlq_id, date(2026, 3, 1))
    encrypted()
    assert _findings() == [("error", "REDRIVE_PAYLOAD_KEYS is not set, but payloads are encrypted with old.")]


def test_the_doctor_finds_a_wrong_key_under_the_right_name(orders: DeadLetterQueue, encrypted: Rings) -> None:
    content.sealer_of(orders.pk, date(2026, 3, 1))
    encrypted(WRONG_OLD)
    ((severity, what),) = _findings()
    assert (severity, what.partition(":")[0]) == ("error", "The payload key old does not fit")


@pytest.mark.parametrize("right", ["oldest", "newest"])
def test_the_doctor_finds_a_key_that_was_wrong_for_a_while(
    orders: DeadLetterQueue, encrypted: Rings, right: str
) -> None:
    for day, key in ((1, OLD), (2, WRONG_OLD)):
        encrypted(key)
        ring, of = payload_keys._unwrapped.ring()[0], (orders.pk, date(2026, 3, day))
        wrapped = ring.wrap(sealing.new_secret(), payload_keys.context_of(of))[1]
        PayloadKey.objects.create(dlq=orders, day=of[1], wrapped=wrapped, wrapped_by="old")
    encrypted(OLD if right == "oldest" else WRONG_OLD)
    assert [severity for severity, _ in _findings()] == ["error"]


def test_the_doctor_counts_readable_payloads_and_says_how_to_encrypt_them(
    ask: Ask, letter: Letter, encrypted: Rings
) -> None:
    assert _findings() == [("well", "encrypted with the key old.")]  # nothing is encrypted yet
    content.sealer_of(letter.dlq_id, date(2026, 3, 1))
    readable, well = payloads.findings(conf.current())
    assert readable.what.startswith("1 payloads and edits are stored readable")
    assert "rotate_payload_keys --seal-readable" in readable.cure
    ask("rotate_payload_keys", "--seal-readable", *WHY, "--confirm")
    assert list(payloads.findings(conf.current())) == [well]
