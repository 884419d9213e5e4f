"""After a restore from a backup nothing is sent until a person has decided about the messages in doubt."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from typing import Any
from unittest.mock import Mock
from uuid import uuid4

import pytest
import redis
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import transaction
from django.test import Client

from reprocessing.domain.errors import RestoreUnresolved
from reprocessing.gateways.redis.tick_watermark import TickWatermark
from reprocessing.management.console import format_time
from reprocessing.models import Attempt, AuditEntry, GlobalStop, Letter, TickCount
from reprocessing.models.system import RestoreDecision
from reprocessing.pipeline.maintenance import detect_restore, reconcile, recover
from reprocessing.store import rows
from reprocessing.store.maintenance import restore_detection, restore_doubts, restore_hold
from reprocessing.store.ordering import lanes
from reprocessing.store.outcomes import delivery_status
from reprocessing.store.replay.settlement import presume_delivered
from reprocessing.store.safety import stops
from tests.conditions import eventually
from tests.race.abreast import elsewhere, together, waits_for_us
from tests.reprocessing.pipeline import restoring
from tests.reprocessing.pipeline.bench import BRISK, KEYED, Clock, Workbench, enqueued, redriven
from tests.reprocessing.pipeline.benches import awaiting, bury_keyed
from tests.reprocessing.pipeline.interposed import happens_before

pytestmark = pytest.mark.django_db(transaction=True)

WHY: dict[str, Any] = {"by": "ann", "reason": "the disk burnt"}
SHORT = replace(BRISK, receive_visibility=1)  #: copies are visible again at once
SLOW: dict[str, Any] = {"backoff_base": 600, "backoff_jitter": "none"}


def held() -> restore_hold.RestoreHold:
    return restore_hold.begin_hold(lanes.database_now(), **WHY)


def found() -> dict[str, int]:
    """Return how many undecided letters have each finding."""
    return {one.finding: one.n for one in restore_doubts.count_findings()}


def by_body() -> dict[str, str]:
    """Return the finding of each undecided letter, by its body."""
    bodies = dict(Letter.objects.values_list("pk", "payload__body"))
    return {
        bytes(bodies[one.letter_id]).decode(): one.finding for group in reconcile.undecided_groups() for one in group
    }


def say(**words: str) -> int:
    return reconcile.decide({kind: RestoreDecision(word) for kind, word in words.items()}, dlq=None, **WHY)


def decided() -> None:
    say(unknown="replay", unfinished="replay")


def replay_all() -> None:
    """Decide that every letter in doubt is replayed, and end the hold."""
    decided()
    assert restore_hold.end_hold(**WHY, early=True) is not None


def sent_and_forgotten(bench: Workbench) -> list[dict[str, Any]]:
    """Replay, go back to the backup from before, and begin a hold. Return what was delivered."""
    restoring.take()
    bench.replay()
    sent = bench.delivered()
    restoring.restore()
    held()
    return sent


def ask(*arguments: str) -> Any:  # noqa: ANN401  parsed JSON, or text
    out = StringIO()
    call_command("after_restore", *arguments, stdout=out)
    return json.loads(out.getvalue()) if "--json" in arguments else out.getvalue()


def come_to_sight(bench: Workbench) -> None:
    """Wait, by SQS's own clock, until no message of the DLQ is in flight."""

    def in_flight() -> int:
        asked = bench.sqs.get_queue_attributes(QueueUrl=bench.dlq_url, AttributeNames=["All"])["Attributes"]
        return int(asked["ApproximateNumberOfMessagesNotVisible"])

    eventually(lambda: in_flight() == 0, within=10)


def drained_late(bench: Workbench, clock: Clock) -> None:
    """Capture until the DLQ is empty, after all hidden copies have become visible."""
    come_to_sight(bench)
    clock.advance(restore_hold.MAX_VISIBILITY.total_seconds() + 60)
    assert bench.capture().captured.drained


def test_nothing_is_sent_while_it_is_held_and_all_is_when_a_person_has_said_so() -> None:
    bench = enqueued("letter")
    held()
    assert (bench.replay().taken, bench.delivered()) == (0, [])
    assert lanes.hint(limit=5, lifetime=5) == []
    decided()
    assert (bench.replay().taken, bench.delivered()) == (0, [])
    restore_hold.end_hold(**WHY, early=True)
    assert (bench.replay().taken, bench.delivered_bodies()) == (1, ["letter"])


def test_no_other_command_lifts_the_hold() -> None:
    held()
    with pytest.raises(RestoreUnresolved, match="after_restore"):
        stops.resume(None, **WHY)
    for more in ((), ("--confirm",)):
        with pytest.raises(CommandError, match="after_restore report"):
            call_command("resume_redrive", "--all", "--reason", "why", *more)
    assert GlobalStop.objects.get().restored_to is not None


def test_a_stop_of_everything_outlives_the_hold() -> None:
    stops.stop(None, by="bob", reason="rain")
    held()
    restore_hold.end_hold(**WHY, early=True)
    stop = stops.stop_of(None)
    assert stop
    assert (stop.by, stop.reason) == ("bob", "rain")


def test_a_hold_that_ends_before_it_has_caught_up_has_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restore_detection, "raise_ticks", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        detect_restore.begin_hold(
            TickWatermark.at(settings.REDIS_URL), lanes.database_now(), by="ann", reason="a restore", anew=False
        )
    assert restore_hold.current_hold() is None


def test_two_who_hold_at_once_begin_one_hold() -> None:
    enqueued("letter")
    begun = together([held] * 4)
    assert (sum(one.new for one in begun), len({one.since for one in begun}), found()) == (1, 1, {"hidden": 1})


def test_nothing_that_was_out_is_presumed_delivered_since_its_return_may_be_forgotten() -> None:
    bench = awaiting("letter")
    bench.delivered()
    held()
    for _ in range(2):
        bench.capture()
        assert bench.promote() == 0
    assert (bench.states(), found()) == ({"letter": "awaiting"}, {"hidden": 1})


def test_a_promotion_that_had_begun_before_the_hold_presumes_nothing() -> None:
    bench = awaiting("letter")
    held()
    assert (presume_delivered([Attempt.objects.get().pk]), bench.states()) == ([], {"letter": "awaiting"})


@pytest.mark.soak
def test_a_copy_that_was_about_to_expire_and_is_gone_proves_nothing(clock: Clock) -> None:
    bench = enqueued("letter", conf=SHORT)
    sent_and_forgotten(bench)
    drained_late(bench, clock)
    assert found() == {"gone": 1}
    Letter.objects.update(expires_at=lanes.database_now() + timedelta(hours=1))
    assert found() == {"dropped": 1}


@pytest.mark.soak
def test_what_is_sent_twice_was_named_and_nothing_is_lost(clock: Clock) -> None:
    bench = Workbench(conf=SHORT, fields={"ordering_key": "attribute:key", **SLOW})
    for body in "012345":
        bench.bury(body, key="k")
    bench.ready()
    with bench.refusing("3"):
        assert [sent["Body"] for sent in sent_and_forgotten(bench)] == ["0", "1", "2"]
    drained_late(bench, clock)
    named = {body for body, finding in by_body().items() if finding != "gone"}
    say(finished="delivered", unfinished="replay", unknown="replay")
    assert restore_hold.end_hold(**WHY, early=False) is not None
    bench.replay()
    sent_after = bench.delivered_bodies()
    assert (sent_after, named) == (["3", "4", "5"], {"3", "4", "5"})
    assert set(bench.states().values()) == {"delivered"}
    said = Letter.objects.filter(presumed=True)
    assert {one.detail for one in said} == {'ann decided this after a restore: "the disk burnt"'}
    assert said.count() == 3
    known = delivery_status.status_of(said[0])
    assert (known.how, "a person decided this" in known.sentence) == ("presumed", True)


@pytest.mark.soak
def test_what_was_out_when_the_backup_was_made_waits_for_a_person() -> None:
    bench = enqueued("letter", conf=SHORT)
    bench.replay_and_die(sent=True)
    held()
    come_to_sight(bench)
    bench.capture()
    assert found() == {"sent": 1}
    say(unknown="parked")
    assert (bench.letter().state, bench.letter().reason) == ("parked", "in_doubt")
    assert bench.history() == [(1, "unknown", 0)]


@pytest.mark.soak
def test_what_was_on_its_last_attempt_is_replayed_when_a_person_says_so(clock: Clock) -> None:
    bench = enqueued("letter", conf=SHORT, fields={"max_attempts": 1})
    bench.replay_and_die(sent=True)
    held()
    come_to_sight(bench)
    bench.capture()
    replay_all()
    clock.advance(10)  # past the dead worker's lease
    bench.replay()
    assert (bench.states(), bench.history()) == ({"letter": "delivered"}, [(1, "unknown", 0), (2, "accepted", 0)])


def test_whoever_looks_is_told_of_the_restore_and_of_what_ends_the_hold(client: Client) -> None:
    bench = Workbench()
    held()
    out = StringIO()
    call_command("redrive_status", stdout=out)
    assert "EVERYTHING IS HELD" in out.getvalue()
    assert "after_restore report" in out.getvalue()
    assert "resume_redrive" not in out.getvalue()
    with pytest.raises(CommandError, match=r"restored from a backup. Nothing is sent .* after_restore report"):
        call_command("drain_dlq", bench.name)
    client.force_login(User.objects.create_superuser("root"))
    page = client.get("/admin/").content.decode()
    assert ("PostgreSQL was restored from a backup" in page, "Let it go on" in page) == (True, False)


@pytest.mark.soak
def test_what_came_back_from_a_forgotten_attempt_is_the_same_letter_and_not_lost() -> None:
    bench = enqueued("letter", conf=SHORT)
    (sent,) = sent_and_forgotten(bench)
    bench.take_back(sent)
    assert (bench.states(), found()) == ({"letter": "waiting"}, {"came_back": 1})
    assert bench.letter().attempts == 1
    assert rows.execute("SELECT FROM redrive_dlq_copy WHERE expires_at IS NULL", {}) == 0
    replay_all()
    bench.replay()
    (again,) = bench.delivered()
    assert again["MessageAttributes"]["RedriveId"]["StringValue"].endswith(":2")
    assert bench.states() == {"letter": "delivered"}


@pytest.mark.soak
def test_what_came_back_from_a_forgotten_attempt_went_before_an_earlier_letter_that_turns_up_now() -> None:
    bench = Workbench(conf=SHORT, fields=KEYED)
    bury_keyed(bench, "a2")
    bench.ready()
    (sent,) = sent_and_forgotten(bench)
    bench.take_back(sent)
    replay_all()
    bury_keyed(bench, "a1")
    bench.ready()
    bench.replay()
    early = bench.letter(payload__body=b"a1")
    assert (early.state, early.reason, bench.states()["a2"]) == ("parked", "stale", "delivered")


def test_a_delivered_letter_that_came_back_from_a_forgotten_attempt_waits_again() -> None:
    bench = redriven("letter", conf=SHORT)
    (sent,) = bench.delivered()
    mark = sent["MessageAttributes"]["RedriveId"]
    sent["MessageAttributes"]["RedriveId"] = {**mark, "StringValue": mark["StringValue"].replace(":1", ":3")}
    bench.take_back(sent)
    assert (bench.letter().state, bench.letter().attempts, Letter.objects.count()) == ("waiting", 3, 1)
    bench.capture()
    assert (bench.letter().attempts, bench.left()) == (3, 0)


def test_what_died_between_the_backup_and_the_hold_is_in_doubt_and_what_died_since_is_not() -> None:
    bench = Workbench()
    bench.bury("before")
    restore_hold.begin_hold(lanes.database_now() - timedelta(hours=1), **WHY)
    bench.bury("since")
    bench.capture()
    restore_hold.doubt_newly_captured()
    assert by_body() == {"before": "arrived"}


def test_a_capture_that_ran_dry_before_all_is_in_sight_ends_no_hold(clock: Clock) -> None:
    bench = Workbench()
    held()
    clock.advance(restore_hold.MAX_VISIBILITY.total_seconds() - 60)
    assert bench.capture().captured.drained
    with pytest.raises(RestoreUnresolved, match=bench.name):
        restore_hold.end_hold(**WHY, early=False)
    clock.advance(61)
    bench.capture()
    assert restore_hold.end_hold(**WHY, early=False) is not None


def test_a_decision_goes_on_where_it_was_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    enqueued("a", "b", "c")
    held()
    monkeypatch.setattr(reconcile, "GROUP", 1)

    def interrupt(done: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reconcile.decide({"unknown": RestoreDecision.SEND_AGAIN}, dlq=None, **WHY, on_progress=interrupt)
    assert (found(), say(unknown="replay"), found()) == ({"hidden": 1}, 1, {})
    assert AuditEntry.objects.filter(act="changed").count() == 3


def test_copies_nobody_has_seen_since_are_not_hidden_for_longer() -> None:
    bench = enqueued("letter", conf=replace(BRISK, receive_visibility=30))
    held()
    recover.sweep_dlq(bench.dlq, conf=replace(BRISK, receive_visibility=120))
    assert rows.execute("SELECT FROM redrive_dlq_copy WHERE extended", {}) == 0


# A restore that nobody announced


NOTICES = pytest.mark.parametrize(
    "notices", [detect_restore.count_tick, detect_restore.is_database_current], ids=["a tick", "a slice"]
)


@pytest.fixture
def marks() -> TickWatermark:
    return TickWatermark.at(settings.REDIS_URL)


def restored(marks: TickWatermark, *, forgets: int = 3) -> None:
    """Tick, then set the database back to where it was after two ticks."""
    for _ in range(2):
        detect_restore.count_tick(marks)
    was = restore_detection.read_ticks()
    for _ in range(forgets):
        assert detect_restore.count_tick(marks)
    assert was is not None
    TickCount.objects.update(ticks=was.ticks)


@pytest.mark.parametrize("forgets", [1, 3])
@NOTICES
def test_a_restore_that_nobody_tells_of_is_held(
    marks: TickWatermark, notices: Callable[[TickWatermark], bool], forgets: int
) -> None:
    bench = enqueued("letter")
    restored(marks, forgets=forgets)
    assert not notices(marks)
    there = restore_hold.current_hold()
    assert there
    assert "restored from a backup" in there.reason
    assert (bench.replay().taken, found()) == (0, {"hidden": 1})


@NOTICES
def test_a_restore_from_a_backup_of_a_hold_is_held_anew(
    notices: Callable[[TickWatermark], bool], marks: TickWatermark
) -> None:
    enqueued("letter")
    first = held()
    decided()
    assert restore_hold.count_undecided() == 0
    restored(marks)
    assert notices(marks) is False
    second = restore_hold.current_hold()
    assert second is not None
    assert (second.by, second.since > first.since, restore_hold.count_undecided()) == ("the service", True, 1)
    with pytest.raises(RestoreUnresolved, match="1 message is undecided"):
        restore_hold.end_hold(**WHY, early=True)
    assert AuditEntry.objects.filter(act="stopped").count() == 2
    assert (detect_restore.count_tick(marks), restore_hold.current_hold()) == (True, second)


def test_a_person_who_says_again_is_asked_about_every_letter_anew() -> None:
    enqueued("letter")
    held()
    decided()
    later = lanes.database_now().isoformat()
    with pytest.raises(CommandError, match="add --again"):
        ask("hold", "--since", later, "--reason", "again", "--confirm")
    assert restore_hold.count_undecided() == 0
    ask("hold", "--again", "--since", later, "--by", "bob", "--reason", "again", "--confirm")
    found = restore_hold.current_hold()
    assert found is not None
    assert (found.by, found.restored_to.isoformat(), restore_hold.count_undecided()) == ("bob", later, 1)


@pytest.mark.parametrize("decides", [decided, replay_all])
@NOTICES
def test_a_worker_that_froze_with_the_proof_of_a_restore_does_not_hold_it_again(
    marks: TickWatermark,
    notices: Callable[[TickWatermark], bool],
    decides: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    enqueued("letter")
    restored(marks)
    there = []

    def another_holds_it() -> None:
        assert not detect_restore.is_database_current(marks)
        decides()
        there.append(restore_hold.current_hold())

    happens_before(monkeypatch, detect_restore, "_hold", another_holds_it, once=True)
    assert notices(marks) is True
    assert ([restore_hold.current_hold()], restore_hold.count_undecided()) == (there, 0)
    assert AuditEntry.objects.filter(act="stopped").count() == 1


def test_of_two_who_have_the_proof_of_a_restore_at_once_one_holds(marks: TickWatermark) -> None:
    restored(marks)
    known = marks.known(str(TickCount.objects.get().database))
    assert known is not None
    with elsewhere() as begin, transaction.atomic():
        restore_detection.raise_ticks(known)
        late = begin(lambda: detect_restore.is_database_current(marks))
        waits_for_us()
        first = restore_hold.begin_hold(lanes.database_now(), **WHY, anew=True)
    assert (late.result(30), restore_hold.current_hold()) == (True, replace(first, new=False))
    assert AuditEntry.objects.filter(act="stopped").count() == 1


def _flushed() -> TickWatermark:
    redis.Redis.from_url(settings.REDIS_URL).delete(f"redrive:highwater:{TickCount.objects.get().database}")
    return TickWatermark.at(settings.REDIS_URL)


def _gone() -> TickWatermark:
    return TickWatermark.at("redis://127.0.0.1:9/0")


def _of_another_database() -> TickWatermark:
    TickCount.objects.update(database=uuid4())
    return TickWatermark.at(settings.REDIS_URL)


@pytest.mark.parametrize("knows_nothing", [_flushed, _gone, _of_another_database])
def test_a_redis_that_knows_nothing_holds_nothing(
    marks: TickWatermark, knows_nothing: Callable[[], TickWatermark]
) -> None:
    restored(marks)
    marks = knows_nothing()
    assert (detect_restore.is_database_current(marks), detect_restore.count_tick(marks)) == (True, True)
    assert restore_hold.current_hold() is None


def test_a_tick_and_a_slice_ask_redis_once_each(marks: TickWatermark) -> None:
    detect_restore.count_tick(marks)  # the script is known from now on

    def cost(of: Callable[[TickWatermark], bool]) -> int:
        calls: list[str] = []
        execute = redis.Redis.execute_command
        with pytest.MonkeyPatch.context() as patch:

            def heard(self: redis.Redis, *rest: Any, **options: Any) -> Any:  # noqa: ANN401  redis's own
                calls.append(str(rest[0]))
                return execute(self, *rest, **options)  # type: ignore[no-untyped-call]

            patch.setattr(redis.Redis, "execute_command", heard)
            of(marks)
        return len(calls)

    assert [cost(detect_restore.count_tick), cost(detect_restore.is_database_current)] == [1, 1]


# The command


@pytest.mark.soak
def test_the_command_leads_from_the_hold_to_the_release(clock: Clock) -> None:
    bench = enqueued("letter", conf=SHORT)
    since = (lanes.database_now() + timedelta(seconds=1)).isoformat()
    clock.advance(2)
    said = ("--reason", "the disk burnt", "--by", "ann")
    assert "NOT HELD" in ask("hold", "--since", since, *said)
    assert GlobalStop.objects.count() == 0
    assert ask("hold", "--since", since, *said, "--confirm", "--json")["new"] is True
    drained_late(bench, clock)
    told = ask("report", "--json")
    (letter,) = told["messages"]
    assert (letter["message_id"], letter["class"], letter["finding"]) == (
        bench.letter().message_id, "unfinished", "seen",
    )  # fmt: skip
    assert (told["undecided"], told["not_in_sight"]) == (1, [])
    assert "1 message would be decided" in ask("resolve", bench.name, "--unfinished", "replay", *said)
    for more in ((), ("--confirm",)):
        with pytest.raises(CommandError, match="Nothing was done: 1 message is undecided"):
            ask("release", *said, *more)
    assert ask("resolve", "--unfinished", "replay", *said, "--confirm", "--json")["decided"] == 1
    assert "Sending resumes." in ask("release", *said, "--confirm")
    assert (restore_hold.current_hold(), bench.replay().taken) == (None, 1)


def test_what_ends_the_hold_is_told_with_its_time_and_a_dry_run_is_refused_as_the_release_is() -> None:
    bench = enqueued("letter")
    began = held()
    why = ("--reason", "why")
    after = (
        f"once a capture of {bench.name} that begins after {format_time(began.in_sight_at)} has emptied it: manage.py"
    )
    assert after in ask("resolve", "--unknown", "replay", *why, "--confirm")
    assert after in ask("report")
    refusals = []
    for more in ((), ("--json",), ("--confirm",)):
        with pytest.raises(CommandError, match="not all hidden messages are visible") as refused:
            ask("release", *why, *more)
        refusals.append(str(refused.value))
    assert len(set(refusals)) == 1
    assert "This was a dry run: with --confirm, sending resumes." in ask("release", *why, "--early")
    assert restore_hold.current_hold() is not None


def test_a_second_hold_with_another_time_says_that_the_first_stands() -> None:
    began = restore_hold.begin_hold(lanes.database_now() - timedelta(hours=1), **WHY)
    for more in ((), ("--confirm",), ("--confirm", "--json")):
        with pytest.raises(CommandError, match="--since 0001-01-01 00:00:00 UTC was ignored") as refused:
            ask("hold", "--since", "0001-01-01", "--reason", "again", *more)
        assert f"restored to {format_time(began.restored_to)}" in str(refused.value)
    again = ask("hold", "--since", began.restored_to.isoformat(), "--reason", "again", "--confirm", "--json")
    assert (again["new"], restore_hold.current_hold()) == (False, replace(began, new=False))
    assert AuditEntry.objects.filter(act="stopped").count() == 1


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("resolve", "--unfinished", "replay"), "Nothing is held after a restore"),
        (("resolve", "--unfinished", "delivered"), "invalid choice"),
        (("hold", "--since", "2999-01-01T00:00:00Z"), "is in the future"),
    ],
)
def test_a_command_that_makes_no_sense_is_refused_and_holds_nothing(arguments: tuple[str, ...], why: str) -> None:
    for more in ((), ("--confirm",)):
        with pytest.raises(CommandError, match=why):
            ask(*arguments, "--reason", "why", *more)
    assert GlobalStop.objects.count() == 0


def test_a_first_line_of_a_hold_counts_in_words_and_says_the_year_in_full() -> None:
    redriven("letter")
    assert ask("hold", "--since", "0001-01-01", "--reason", "why").startswith(
        "1 attempt began after 0001-01-01 00:00:00 UTC: "
    )
