"""Parked letters are released, discarded and restored exactly as they were chosen, by a named person with a reason."""

from __future__ import annotations

import json
import subprocess
from datetime import datetime, timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.test.utils import CaptureQueriesContext

from reprocessing.domain.lifecycle import LetterState, ParkedReason
from reprocessing.management.shared import parking_command, parking_selection
from reprocessing.models import AuditEntry, DeadLetterQueue, Letter, Run, Target
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.store.ordering import lanes
from tests.reprocessing.commands.conftest import AddRow, Ask, AskJson
from tests.reprocessing.commands.refusals import refusal
from tests.reprocessing.commands.stock import add_lane, add_letter, add_source, ago

pytestmark = pytest.mark.django_db
WHY = ("--reason", "the shop was mended", "--by", "ann")


class Lot:
    """Parked letters of one dlq: by two reasons, three keys, and two ages."""

    def __init__(self, dlq: DeadLetterQueue) -> None:
        self.dlq, self.source = dlq, add_source(dlq)
        self.old = self.park("a", "refused", since=ago(hours=5))
        self.young = self.park("a", "refused", since=ago(minutes=5))
        self.spent = self.park("b", "attempts_spent", since=ago(minutes=4))

    def park(self, key: str, reason: str, *, since: datetime) -> Letter:
        values = {"planned": True, "sequence": "1", "lane": add_lane(self.source), "ordering_key": key}
        return add_letter(self.source, LetterState.PARKED, reason=reason, finished_at=since, body=b"secret", **values)

    def states(self) -> list[str]:
        found = dict(Letter.objects.values_list("pk", "state"))
        return [found[one.pk] for one in (self.old, self.young, self.spent)]


@pytest.fixture
def lot(add_row: AddRow) -> Lot:
    return Lot(add_row("orders"))


def test_a_dry_run_shows_counts_and_examples_and_releases_nothing(lot: Lot, ask: Ask) -> None:
    said = ask("release_parked", "orders", *WHY)
    assert "orders: 3 parked messages match:" in said
    assert [line for line in said.splitlines() if "parked because" in line] == [
        f"  2 parked because: {ParkedReason.REFUSED.sentence} (--parked-for refused)",
        f"  1 parked because: {ParkedReason.ATTEMPTS_SPENT.sentence} (--parked-for attempts_spent)",
    ]
    assert f"{lot.old.message_id}, key 'a', since" in said
    assert "secret" not in said
    assert lot.states() == ["parked"] * 3
    assert not AuditEntry.objects.exists()


def test_confirmed_they_go_back_to_their_lanes_and_it_is_written_down(lot: Lot, ask: Ask) -> None:
    said = ask("release_parked", "orders", *WHY, "--confirm")
    run = Run.objects.get()
    assert "3 of 3 are released." in said
    assert f"manage.py rerun {run.name} --confirm" in said
    assert lot.states() == ["waiting"] * 3
    assert set(AuditEntry.objects.values_list("act", "by", "reason")) == {("released", "ann", "the shop was mended")}
    assert set(Letter.objects.values_list("released_by", flat=True)) == {"ann"}


@pytest.mark.parametrize(
    ("filters", "meant"),
    [
        (("--parked-for", "refused"), ["waiting", "waiting", "parked"]),
        (("--parked-for", "refused", "--parked-for", "attempts_spent"), ["waiting"] * 3),
        (("--key", "b"), ["parked", "parked", "waiting"]),
        (("--older-than", "1h"), ["waiting", "parked", "parked"]),
        (("--older-than", "90s"), ["waiting"] * 3),
        (("--limit", "2"), ["waiting", "waiting", "parked"]),
        (("--parked-for", "refused", "--key", "a", "--older-than", "1h"), ["waiting", "parked", "parked"]),
    ],
)
def test_each_filter_narrows(lot: Lot, ask: Ask, filters: tuple[str, ...], meant: list[str]) -> None:
    ask("release_parked", "orders", *filters, *WHY, "--confirm")
    assert lot.states() == meant


@pytest.mark.parametrize(
    "filters",
    [("--older-than", "86400s"), ("--parked-for", "refused", "--key=b"), ("--message-id", "m-0"), ("--key=A",)],
)
@pytest.mark.parametrize("confirm", [(), ("--confirm",)])
def test_filters_that_mean_no_letter_are_a_failure_that_says_what_there_is(
    lot: Lot, filters: tuple[str, ...], confirm: tuple[str, ...]
) -> None:
    said = refusal("release_parked", "orders", *filters, *WHY, *confirm)
    assert f"matches {' '.join(filters)}. Parked there: 1 attempts_spent, 2 refused." in said
    assert lot.states() == ["parked"] * 3


def test_a_failure_of_filters_is_still_one_object_and_another_dlq_s_letters_are_never_meant(
    lot: Lot, ask: Ask, add_row: AddRow
) -> None:
    out = StringIO()
    with pytest.raises(CommandError):
        call_command("release_parked", "orders", "--key", "nobody", *WHY, "--json", stdout=out)
    assert json.loads(out.getvalue())["messages"] == 0
    assert ask("release_parked", add_row("mails").name, *WHY, "--confirm") == "mails has no parked messages.\n"
    assert lot.states() == ["parked"] * 3


def test_letters_are_named_by_their_message_ids_and_one_is_told_in_the_singular(lot: Lot, ask: Ask) -> None:
    ids = ("--message-id", lot.old.message_id, "--message-id", lot.spent.message_id)
    ask("release_parked", "orders", *ids, *WHY, "--confirm")
    assert lot.states() == ["waiting", "parked", "waiting"]
    said = ask("release_parked", "orders", "--key", "a", *WHY, "--confirm")
    assert ("1 parked message matches:" in said, "1 of 1 is released." in said) == (True, True)


def test_what_a_dry_run_ends_with_acts_on_exactly_what_it_showed(lot: Lot, ask: Ask, ask_json: AskJson) -> None:
    mark = ask_json("release_parked", "orders", "--parked-for", "refused", *WHY)["selection"]
    last = ask("release_parked", "orders", "--parked-for", "refused", *WHY).splitlines()[-1]
    assert last == (
        "manage.py release_parked orders --parked-for refused --by ann '--reason=the shop was mended' "
        f"--selection {mark} --confirm"
    )
    later = lot.park("c", "refused", since=ago(seconds=1))
    ask("release_parked", "orders", "--parked-for", "refused", *WHY, "--selection", mark, "--confirm")
    assert lot.states() == ["waiting", "waiting", "parked"]
    assert Letter.objects.get(pk=later.pk).state == "parked"


def test_a_dry_run_needs_no_reason_and_its_last_line_has_a_place_for_it(lot: Lot, ask: Ask) -> None:
    last = ask("release_parked", "orders", "--parked-for", "refused", "--by", "ann").splitlines()[-1]
    assert last.startswith("manage.py release_parked orders --parked-for refused --by ann --reason=WHY --selection ")
    assert lot.states() == ["parked"] * 3


def test_a_selection_that_somebody_touched_since_is_left_alone(lot: Lot, ask_json: AskJson) -> None:
    mark = ask_json("release_parked", "orders", *WHY)["selection"]
    act_on_parked.discard([lot.old.pk], by="bob", reason="old")
    said = refusal("release_parked", "orders", *WHY, "--selection", mark, "--confirm")
    assert "some messages of the dry run are no longer parked" in said
    assert lot.states() == ["discarded", "parked", "parked"]


def test_what_somebody_decides_meanwhile_is_told_and_is_a_failure(lot: Lot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look and the action, another person discards one."""
    select = parking_selection.select_messages

    def selecting(
        dlq: DeadLetterQueue, state: LetterState, options: dict[str, object]
    ) -> list[parking_selection.Parked]:
        found = select(dlq, state, options)
        act_on_parked.discard([lot.old.pk], by="bob", reason="old")
        return found

    monkeypatch.setattr(parking_selection, "select_messages", selecting)
    out = StringIO()
    with pytest.raises(CommandError, match="1 of 3 are not released"):
        call_command("release_parked", "orders", *WHY, "--confirm", stdout=out)
    said = out.getvalue()
    assert "2 of 3 are released." in said
    assert f"1 refused, since it is no longer parked: it is discarded: {lot.old.message_id}" in said


def test_many_are_decided_in_groups(lot: Lot, ask_json: AskJson, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parking_command, "GROUP_SIZE", 2)
    with CaptureQueriesContext(connection) as queries:
        told = ask_json("release_parked", "orders", *WHY, "--confirm")
    assert (told["messages"], told["released"], told["refused"]) == (3, 3, {})
    assert sum("SAVEPOINT" in one["sql"] and "RELEASE" not in one["sql"] for one in queries) == 2
    assert lot.states() == ["waiting"] * 3


def test_in_json_a_program_learns_reasons_and_the_mark(lot: Lot, ask_json: AskJson) -> None:
    told = ask_json("release_parked", "orders", *WHY)
    assert told == {
        "dlq": "orders", "dry_run": True, "messages": 3, "reasons": {"refused": 2, "attempts_spent": 1}, "released": 0,
        "refused": {}, "selection": told["selection"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--confirm",), "--reason"),
        (("--reason", "  "), "it is empty"),
        (("--reason", "x", "--older-than", "soon"), "is not a duration"),
        (("--reason", "x", "--older-than", "999999999d"), "is not a duration of at most 100 years"),
        (("--reason", "x", "--parked-for", "mood"), "invalid choice"),
        (("--reason", "x", "--selection", "abc"), "is not the mark"),
    ],
)
def test_what_is_unclear_is_refused_in_words(lot: Lot, arguments: tuple[str, ...], why: str) -> None:
    assert why in refusal("release_parked", "orders", *arguments)
    assert lot.states() == ["parked"] * 3


def test_a_key_that_would_deceive_is_shown_as_what_it_is(lot: Lot, ask: Ask) -> None:
    lot.park("x\x1b[31m" + "k" * 100, "refused", since=ago(hours=9))
    said = ask("release_parked", "orders", *WHY)
    assert "\x1b" not in said
    assert "key 'x\\x1b[31mk" in said
    assert "k" * 61 not in said


def test_they_are_released_at_a_time_and_to_another_target(lot: Lot, ask: Ask, add_row: AddRow) -> None:
    there = Target.objects.create(arn="arn:aws:sqs:eu-west-1:0:there", url="http://127.0.0.1:9/0/there", region="x")
    due = (lanes.database_now() + timedelta(hours=1)).replace(microsecond=0)
    how = ("--at", due.isoformat(), "--target", "there")
    said = ask("release_parked", "orders", *how, *WHY)
    assert f"--at {due.isoformat()} --target there" in said.splitlines()[-1]
    ask("release_parked", "orders", *how, *WHY, "--confirm")
    assert set(Letter.objects.values_list("state", "due_at", "target_id")) == {("waiting", due, there.pk)}


def test_a_time_that_has_passed_and_a_target_that_is_none_are_refused(lot: Lot) -> None:
    row = lot.dlq
    Target.objects.create(arn=row.arn, url=row.url, region="x")
    for how, told in (
        (("--at", "2020-01-01"), "is in the past. Leave out --at"),
        (("--target", "nowhere"), 'no target is named "nowhere"'),
        (("--target", row.arn), "is the registered DLQ orders"),
    ):  # fmt: skip
        assert told in refusal("release_parked", "orders", *how, *WHY, "--confirm")
    assert lot.states() == ["parked"] * 3


# Discarded, and restored.


def test_a_dry_run_discards_nothing_and_says_how_to(lot: Lot, ask: Ask) -> None:
    said = ask("discard_parked", "orders", "--older-than", "60m", *WHY)
    assert "This was a dry run: none of them is discarded." in said
    assert said.splitlines()[-1].startswith("manage.py discard_parked orders --older-than 3600s --by ann")
    assert lot.states() == ["parked"] * 3


def test_a_key_that_would_act_on_a_terminal_is_printed_as_numbers_that_a_shell_reads(lot: Lot, ask: Ask) -> None:
    key, word = "a\x1b[2J'\\", r"$'--key=a\x1b[2J\'\\'"
    asked = ("discard_parked", "orders", *WHY, "--key", key)
    assert f"matches {word}. Parked there" in refusal(*asked)
    lot.park(key, "refused", since=ago(hours=1))
    said = ask(*asked)
    assert "\x1b" not in said
    assert said.splitlines()[-1].startswith(f"manage.py discard_parked orders {word} ")
    read = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, check=True).stdout
    assert read.decode() == f"--key={key}"


def test_confirmed_they_are_discarded_and_it_is_written_down(lot: Lot, ask_json: AskJson) -> None:
    told = ask_json("discard_parked", "orders", "--parked-for", "refused", *WHY, "--confirm")
    assert (told["discarded"], told["reasons"]) == (2, {"refused": 2})
    assert lot.states() == ["discarded", "discarded", "parked"]
    assert set(AuditEntry.objects.values_list("act", "by", "reason")) == {("discarded", "ann", "the shop was mended")}


def test_what_was_discarded_is_shown_and_parked_again_for_what_it_was_parked_for(lot: Lot, ask: Ask) -> None:
    act_on_parked.discard([lot.old.pk, lot.spent.pk], by="bob", reason="old")
    said = ask("restore_discarded", "orders", *WHY)
    assert "orders: 2 discarded messages match:" in said
    assert f"{lot.old.message_id}, key 'a', since" in said
    assert "This was a dry run: none of them is restored." in said
    assert lot.states() == ["discarded", "parked", "discarded"]
    none = refusal("restore_discarded", "orders", "--key", "x", *WHY)
    assert none.startswith("No discarded message of orders matches --key=x. Discarded there: 2. ")
    assert "1 of 1 is restored." in ask("restore_discarded", "orders", "--key", "b", *WHY, "--confirm")
    assert lot.states() == ["discarded", "parked", "parked"]
    assert Letter.objects.get(pk=lot.spent.pk).reason == "attempts_spent"
    assert AuditEntry.objects.filter(act="restored").values_list("by", "reason").get() == ("ann", WHY[1])
