"""A run is planned by a dry run, started as it was planned, paused, resumed and aborted by those who say why."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from reprocessing.models import Breaker, Lane, Letter, Run, Target, Wave
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.pipeline.runs import drain, feed_run
from reprocessing.store.ordering.lanes import database_now as now
from reprocessing.store.outcomes import evidence
from reprocessing.store.runs import arrived_since, run_transitions
from reprocessing.store.safety import stops
from tests.reprocessing.commands.conftest import AddRow, Ask, AskJson
from tests.reprocessing.commands.refusals import refusal
from tests.reprocessing.commands.stock import ago
from tests.reprocessing.pipeline.bench import Clock, Workbench

pytestmark = pytest.mark.django_db(transaction=True)

WHY = ("--by", "ann", "--reason", "the shop is down")


def monday() -> Run:
    return Run.objects.get(name="monday")


@pytest.mark.soak
def test_what_a_dry_run_planned_is_what_its_command_sends_and_what_came_later_is_told(
    ask: Ask, ask_json: AskJson
) -> None:
    bench = Workbench()
    bench.bury("planned")
    name = ask_json("drain_dlq", bench.name)["run"]
    bench.bury("later")
    bench.capture()
    said = ask("drain_dlq", bench.name, "--run", name)
    assert "since then      1 message arrived; not part of this run" in said
    assert said.splitlines()[-2:] == [
        f"{name} is planned. This was a dry run. To continue the run:",
        f"manage.py drain_dlq {bench.name} --run {name} --confirm",
    ]
    told = ask_json("drain_dlq", bench.name, "--run", name, "--confirm")
    assert (told["run"], told["captured"], told["delivered"]) == (name, 1, 1)
    assert bench.states() == {"planned": "delivered", "later": "captured"}


def test_the_next_dry_run_takes_the_place_of_a_plan_without_an_id(ask_json: AskJson) -> None:
    bench = Workbench()
    bench.bury("letter")
    first, second = (ask_json("drain_dlq", bench.name)["run"] for _ in range(2))
    assert [bench.letter().run] == list(Run.objects.filter(name=second))
    assert f"{first} was aborted by" in refusal("drain_dlq", bench.name, "--run", first, "--confirm")
    assert bench.arrivals() == []


@pytest.mark.soak
def test_a_dry_run_with_an_id_is_kept_and_not_taken_from(ask: Ask, ask_json: AskJson) -> None:
    bench = Workbench()
    bench.bury("letter")
    ask("drain_dlq", bench.name, "--run", "monday")
    assert ask_json("drain_dlq", bench.name, "--confirm")["captured"] == 0
    assert ask_json("drain_dlq", bench.name, "--run", "monday", "--confirm")["delivered"] == 1


@pytest.mark.soak
def test_letters_are_chosen_and_those_behind_others_are_told(ask: Ask, ask_json: AskJson) -> None:
    bench = Workbench(fields={"ordering_key": "attribute:key", "sequence": "attribute:n"})
    ids = [bench.bury(f"{number}", key="a", n=f"{number}") for number in range(3)]
    told = ask_json("drain_dlq", bench.name, "--message-id", ids[0], "--message-id", ids[2])
    assert (told["messages"], told["behind"], told["behind_ids"]) == (1, 1, [ids[2]])
    said = refusal("drain_dlq", bench.name, "--key", "a", "--sent-before", "2020-01-01")
    assert "matches: first sent before 2020-01-01T00:00:00+00:00 and with the ordering key a. Nothing was sent." in said
    assert Run.objects.filter(state="planned").count() == 1  # the plan of before
    told = ask_json("drain_dlq", bench.name, "--source", bench.source_url.rpartition("/")[2], "--confirm")
    assert told["delivered"] == 3


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--source", "nowhere"), "has no source queue nowhere. It has: t-"),
        (("--sent-after", "2026-01-02", "--sent-before", "2026-01-01"), "Swap them"),
        (("--sent-after", "noon"), "'noon' is not a time. Use ISO 8601, such as 2026-03-01T08:00:00Z"),
    ],
)
def test_a_selection_that_means_nothing_is_refused_in_a_sentence(options: tuple[str, ...], why: str) -> None:
    bench = Workbench()
    assert why in refusal("drain_dlq", bench.name, *options)


@pytest.mark.parametrize("verb", ["pause_run", "abort_run"])
def test_without_confirm_it_only_tells(bench: Workbench, ask: Ask, verb: str) -> None:
    assert "this was a dry run. monday is" in ask(verb, "monday", *WHY)
    assert (monday().state, stops.stop_of(bench.dlq.pk)) == ("running", None)


def test_a_paused_run_sends_nothing_until_it_is_resumed_by_somebody_who_hears_why_it_was(
    bench: Workbench, ask: Ask, ask_json: AskJson
) -> None:
    assert ask_json("pause_run", "monday", *WHY, "--confirm")["state"] == "paused"
    assert (bench.replay().taken, bench.states()) == (0, {"0": "waiting", "1": "waiting"})
    said = refusal("rerun", "monday", "--confirm")
    assert said == (
        'monday was paused by ann ("the shop is down"). To continue: manage.py resume_run monday --reason WHY --confirm'
    )
    assert "resume_run monday" in ask("rerun", "monday")
    assert "It was paused by ann: the shop is down" in ask("resume_run", "monday", *WHY)
    assert monday().state == "paused"
    said = ask("resume_run", "monday", *WHY, "--confirm")
    assert "It was paused by ann: the shop is down" in said
    assert "To continue it here: manage.py rerun monday --confirm" in said
    assert bench.replay().taken == 2


@pytest.mark.soak
def test_an_aborted_run_stops_its_dlq_and_its_letters_go_along_with_the_next(
    bench: Workbench, ask: Ask, ask_json: AskJson
) -> None:
    said = ask("abort_run", "monday", *WHY, "--confirm")
    assert f"Its unsent messages wait for the next run. To plan it: manage.py drain_dlq {bench.name}" in said
    assert f"manage.py resume_redrive {bench.name} --reason WHY --confirm" in said
    assert (bench.replay().taken, monday().state) == (0, "aborted")
    ask("resume_redrive", bench.name, *WHY, "--confirm")
    assert (bench.replay().taken, set(bench.states().values())) == (0, {"waiting"})
    assert ask_json("drain_dlq", bench.name)["returned"] == 2
    assert ask_json("drain_dlq", bench.name, "--confirm")["delivered"] == 2


def test_a_drain_does_not_wait_for_a_run_that_is_paused(bench: Workbench, ask: Ask, ask_json: AskJson) -> None:
    ask("pause_run", "monday", *WHY, "--confirm")
    bench.bury("letter")
    assert ask_json("drain_dlq", bench.name, "--confirm")["delivered"] == 1
    assert sorted(bench.states().values()) == ["delivered", "waiting", "waiting"]


def test_a_plan_is_given_up(ask: Ask) -> None:
    bench = Workbench()
    bench.bury("letter")
    ask("drain_dlq", bench.name, "--run", "monday")
    said = ask("abort_run", "monday", *WHY, "--confirm")
    assert said.splitlines() == ["monday was not started, and is deleted. Its messages can be planned again."]
    assert (bench.letter().run, stops.stop_of(bench.dlq.pk)) == (None, None)


def test_a_run_that_is_not_there_or_stands_elsewhere_is_said_to(bench: Workbench, ask: Ask) -> None:
    assert 'No run has the id "tuesday". The last runs: monday.' in refusal("pause_run", "tuesday", *WHY)
    why = "monday is running. Only a run that is paused can be resumed."
    assert refusal("resume_run", "monday", *WHY, "--confirm") == why
    ask("abort_run", "monday", *WHY, "--keep-dlq", "--confirm")
    assert stops.stop_of(bench.dlq.pk) is None
    why = "monday is aborted. Only a run that is planned or running or paused can be aborted. It was aborted by ann"
    assert refusal("abort_run", "monday", *WHY, "--confirm").startswith(why)


def test_an_automatic_run_is_paused_and_never_aborted(ask: Ask) -> None:
    bench = Workbench(fields={"mode": "automatic"})
    run = feed_run.automatic_run(bench.dlq)
    assert f"manage.py pause_run {run.name} --reason WHY --confirm" in refusal("abort_run", run.name, *WHY, "--confirm")
    ask("pause_run", run.name, *WHY, "--confirm")
    bench.bury("letter")
    bench.capture()
    assert (bench.replay().taken, bench.states()) == (0, {"letter": "waiting"})
    ask("resume_run", run.name, *WHY, "--confirm")
    assert bench.replay().taken == 1


def test_a_run_is_shown_with_what_it_came_to_and_when_it_ends(bench: Workbench, ask: Ask, ask_json: AskJson) -> None:
    Target.objects.filter(pk=bench.target.pk).update(rate=0.5)
    Breaker.objects.filter(target=bench.target).update(ramp=0.1, ramp_from=0.1)
    bench.bury("later")
    bench.capture()
    (told,) = ask_json("show_runs", bench.name)["runs"]
    assert (told["run"], told["state"], told["selected"], told["waiting"], told["arrived"]) == (
        "monday", "running", 2, 2, 1,
    )  # fmt: skip
    assert (told["forecast_seconds"], told["targets"][0]["rate_now"], told["done"]) == (22.5, 0.05, 0.0)
    said = ask("show_runs")
    assert f"monday  ({bench.name}, drain, running)" in said
    assert "2 messages to be sent, 0.05 of 0.5 messages/s now" in said
    assert "ends      in about 22 seconds, if nothing fails and the rate keeps ramping up" in said
    assert f"since     1 message more captured in {bench.name}; not part of this run" in said


def test_the_end_of_a_run_depends_on_how_many_messages_may_wait_for_their_outcomes(
    bench: Workbench, ask_json: AskJson, settings: Settings
) -> None:
    wait = (60.0 - evidence.LOOKS_EVERY) / 2
    settings.REDRIVE = {**settings.REDRIVE, "COUNT_LAG": wait, "MAX_UNSETTLED": 1}
    bench.judge_by_absence(window=60)
    bench.bury("later")
    bench.capture()
    assert ask_json("show_runs", bench.name)["runs"][0]["forecast_seconds"] == 2 * 60


def test_messages_that_were_not_counted_are_not_said_to_be_none(
    bench: Workbench, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrived_since, "MAX_COUNT", 1)
    other = Workbench()
    for dlq in (bench, other, other):
        dlq.bury("later")
        dlq.capture()
    assert f"since     perhaps some messages more captured in {bench.name}" in ask("show_runs", bench.name)


def test_a_paused_run_is_shown_with_who_and_why_and_without_an_end(
    bench: Workbench, ask: Ask, ask_json: AskJson
) -> None:
    run_transitions.pause(monday().pk, by="ann", reason="the shop is down")
    assert ask_json("show_runs", "--run", "monday")["runs"][0]["forecast_seconds"] is None
    said = ask("show_runs", bench.name)
    assert "by ann: the shop is down" in said
    assert "ends" not in said


def test_the_last_runs_are_those_that_ended_last_though_later_ones_found_nothing(
    add_row: AddRow, ask_json: AskJson
) -> None:
    row = add_row("orders")
    ends = {"real": 1, "empty": 3, "emptier": 2, "alike": 2}  # in the order of their beginning; minutes ago
    for name, minutes in ends.items():
        Run.objects.create(dlq=row, name=name, state="finished", finished_at=ago(minutes=minutes))
    Run.objects.filter(name="alike").update(finished_at=Run.objects.get(name="emptier").finished_at)
    Run.objects.create(dlq=row, name="goes", state="running")

    def told(last: str) -> list[str]:
        return [one["run"] for one in ask_json("show_runs", "orders", "--last", last)["runs"]]

    assert [told(last) for last in "0123"] == [
        ["goes"], ["real", "goes"], ["real", "alike", "goes"], ["real", "emptier", "alike", "goes"],
    ]  # fmt: skip


@pytest.mark.soak
def test_a_run_says_how_many_of_its_letters_went_to_other_runs(ask: Ask, ask_json: AskJson) -> None:
    bench = Workbench(fields={"max_attempts": 1})
    for body in ("broken", "broken", "fine"):
        bench.bury(body)
    with bench.refusing("broken"):
        ask("drain_dlq", bench.name, "--run", "monday", "--confirm")
    act_on_parked.release(Letter.objects.filter(state="parked").values_list("pk", flat=True), by="ann", reason="mended")
    told = ask_json("show_runs", "--run", "monday")["runs"][0]
    assert (told["captured"], told["in_other_runs"]) == (1, 2)
    assert (
        "  messages  1 message: 1 delivered, 2 failed attempts (100 % finished)\n"
        "            2 messages that it sent, now in other runs\n"
    ) in ask("show_runs", "--run", "monday")
    (other,) = [one for one in ask_json("show_runs")["runs"] if one["run"] != "monday"]
    assert (other["captured"], other["in_other_runs"]) == (2, 0)


def test_a_run_without_a_letter_has_no_share_of_them_at_an_end(add_row: AddRow, ask: Ask) -> None:
    assert ask("show_runs") == "There are no runs. To plan one: manage.py drain_dlq NAME, a dry run.\n"
    Run.objects.create(dlq=add_row("orders"), name="monday", state="finished", finished_at=ago(minutes=1))
    assert ask("show_runs").splitlines() == [
        "monday  (orders, drain, finished)", "  asked     by nobody", "  messages  no messages",
    ]  # fmt: skip


def all_broken(letters: int) -> Workbench:
    bench = Workbench(fields={"waves": True, "max_attempts": 9, "backoff_base": 600, "backoff_jitter": "none"})
    for _ in range(letters):
        bench.bury("broken")
    return bench


@pytest.mark.soak
def test_a_drain_that_stops_itself_ends_with_a_failure_that_says_why_and_how_to_go_on(
    ask: Ask, ask_json: AskJson
) -> None:
    bench = all_broken(40)
    with bench.refusing("broken"):
        said = refusal("drain_dlq", bench.name, "--run", "monday", "--confirm")
    assert "3 waves of one message failed in a row" in said
    assert "manage.py resume_run monday --reason WHY --confirm" in said
    run = monday()
    assert (run.state, run.stopped_by) == ("paused", "the service")
    assert Letter.objects.filter(attempts__gt=0).count() == 3
    assert ask_json("show_runs")["runs"][0]["waves"][-1]["failed"] == 1
    ask("resume_run", "monday", "--reason", "mended", "--confirm")
    Letter.objects.filter(state="waiting").update(due_at=None)
    Lane.objects.filter(phase="ready").update(due_at=now())
    assert ask_json("rerun", "monday", "--confirm")["delivered"] == 40
    asked = ask_json("show_runs", "--run", "monday")["runs"][0]["aws_requests"]
    assert asked["least"] == -(-(3 + 40) // 10) + 40 // 10  # sends, and deletes
    assert f"cost      so far {asked['least']} to {asked['most']} AWS requests, less than $0.01" in ask("show_runs")


def test_a_drain_fails_where_a_run_that_goes_along_stops_itself() -> None:
    bench = all_broken(5)
    bench.capture()
    other = drain.start_run(bench.dlq, name="sunday", asked_by="ann")
    with bench.refusing("broken"):
        said = refusal("drain_dlq", bench.name, "--run", "monday", "--confirm")
    assert said.startswith(f"{other.name}: Paused automatically: 3 waves of one message failed in a row")
    assert f"manage.py resume_run {other.name} --reason WHY --confirm" in said
    assert monday().state == "finished"


@pytest.mark.soak
def test_a_drain_goes_in_waves_as_it_is_told(ask: Ask, ask_json: AskJson) -> None:
    bench = Workbench(fields={"waves": True})
    for number in range(13):
        bench.bury(f"{number}")
    assert "waves           1 message first, then 10, then 100, then all" in ask("drain_dlq", bench.name)
    assert ask_json("drain_dlq", bench.name, "--confirm", "--run", "monday")["delivered"] == 13
    assert list(Wave.objects.order_by("no").values_list("size", "sent", "failed")) == [
        (1, 1, 0), (10, 10, 0), (100, 2, 0),
    ]  # fmt: skip
    bench.bury("more")
    ask("drain_dlq", bench.name, "--confirm", "--run", "tuesday", "--no-waves")
    assert Wave.objects.filter(run__name="tuesday").count() == 0


def test_a_run_whose_last_letters_are_awaited_says_for_what_and_until_when(
    bench: Workbench, clock: Clock, ask: Ask, ask_json: AskJson, settings: Settings
) -> None:
    settings.REDRIVE = {**settings.REDRIVE, "COUNT_LAG": 300}
    bench.judge_by_absence(window=3_600)
    bench.replay()
    bench.delivered()
    bench.promote()  # which sees that nothing lies there
    (told,) = ask_json("show_runs", bench.name)["runs"]
    assert (told["awaiting"], 590 < told["forecast_seconds"] <= 660) == (2, True)
    clock.advance(301)
    bench.promote()  # which sees that there is nothing in it
    clock.advance(199)
    (later,) = ask_json("show_runs", bench.name)["runs"]
    assert 400 < told["forecast_seconds"] - later["forecast_seconds"] < 600
    said = ask("show_runs")
    assert f"awaits    2 messages sent to {bench.name}: another check whether {bench.name} is empty, at " in said
    assert "ends      all are sent; the last outcome is known in about " in said
