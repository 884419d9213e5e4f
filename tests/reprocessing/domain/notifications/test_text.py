"""Each text says what happened, what the service does, and what a person can do, with a link."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reprocessing.domain.notifications.event import EventKind
from reprocessing.domain.notifications.text import (
    LONGEST_BODY,
    LONGEST_TITLE,
    IncidentFacts,
    Stage,
    Text,
    TextSection,
    Tone,
    compose,
    duration,
    trial_text,
)  # fmt: skip
from reprocessing.domain.notifications.wording import WORDING
from tests.reprocessing.domain.notifications.events import event

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def link(model: str, row: str) -> str:
    return f"https://redrive.example.com/{model}/{row}"


def told(kind: EventKind, subject: str = "one", ended: datetime | None = None, **facts: Any) -> IncidentFacts:  # noqa: ANN401
    return IncidentFacts(subject, event(kind, subject, **facts).shown_facts, 1, NOON, ended)


def text(*sections: TextSection, place: str = "production") -> Text:
    return compose(sections, place=place, link=link)


def of(kind: EventKind, stage: Stage = Stage.OPENED, **facts: Any) -> TextSection:  # noqa: ANN401 - facts of any kind
    return TextSection(kind, stage, 1, [told(kind, **facts)])


def test_the_text_of_a_breaker_that_opened() -> None:
    section = of(
        EventKind.BREAKER_OPEN, target="orders", dlq="orders-dlq", breaker_id=1_234, why="5 failures in a row.",
        messages=1_200,
    )  # fmt: skip
    assert text(section) == Text(
        "[production] Circuit breaker open: orders",
        "Circuit breaker open: orders. Since 2026-01-02 12:00 UTC. Reason: 5 failures in a row. "
        "Waiting messages: 1,200.\n"
        "What the service does: It sends nothing to this target. After each cooldown it sends one message as a canary, "
        "and closes the breaker when canaries succeed.\n"
        "What you can do: Check the target and its consumer. To close the breaker now: manage.py reset_breaker "
        'orders-dlq --target "orders" --reason WHY --confirm\n'
        "https://redrive.example.com/breaker/1234",
        Tone.FAILURE,
        "https://redrive.example.com/breaker/1234",
    )  # fmt: skip


def test_a_breaker_of_several_dlqs_is_reset_with_one_of_their_names() -> None:
    body = text(of(EventKind.BREAKER_OPEN, optional=False, target="orders")).body
    assert 'name one of the target\'s DLQs: manage.py reset_breaker DLQ --target "orders" --reason WHY' in body


def test_a_new_failure_group_has_its_title_and_its_number_of_messages() -> None:
    found = text(of(EventKind.FAILURE_GROUP_NEW, title="orders.place: KeyError", messages=1_200))
    assert found.title == "[production] New failure group in DLQ the-dlq: orders.place: KeyError"
    assert "Messages in the group: 1,200." in found.body


@pytest.mark.parametrize("kind", list(EventKind))
@pytest.mark.parametrize("optional", [True, False])
def test_every_kind_has_a_text_with_and_without_its_optional_facts(kind: EventKind, optional: bool) -> None:
    body = text(of(kind, optional=optional)).body
    assert "{" not in body
    assert "What the service does: " in body
    assert "What you can do: " in body


@pytest.mark.parametrize("kind", [kind for kind in EventKind if not kind.is_moment])
def test_the_end_of_every_condition_is_a_success(kind: EventKind) -> None:
    found = text(of(kind, Stage.ENDED, ended=NOON + timedelta(minutes=12)))
    assert found.tone is Tone.SUCCESS
    assert "lasted 12 min." in found.body
    assert WORDING[kind].over != ""


def test_a_reminder_says_that_the_condition_still_holds() -> None:
    assert text(of(EventKind.RUN_STOPPED, Stage.REMINDED)).title.startswith("[production] Still: Run paused")


def test_five_thousand_new_groups_are_one_short_text() -> None:
    section = TextSection(
        EventKind.FAILURE_GROUP_NEW, Stage.OPENED, 5_000,
        [told(EventKind.FAILURE_GROUP_NEW, str(number), group_id=number) for number in range(3)],
    )  # fmt: skip
    found = text(section)
    assert "5,000 new failure groups:" in found.body
    assert "… and 4,997 more." in found.body
    assert found.title.endswith(" (and 4,999 more)")
    assert len(found.body) <= LONGEST_BODY


def test_a_failure_is_the_title_before_news_and_endings() -> None:
    found = text(of(EventKind.RUN_FINISHED), of(EventKind.BREAKER_OPEN, Stage.ENDED), of(EventKind.RUN_STOPPED))
    assert (found.title, found.tone) == ("[production] Run paused: the-run, DLQ the-dlq (and 2 more)", Tone.FAILURE)


def test_what_is_urgent_and_new_is_the_title_before_what_is_urgent_and_what_can_wait() -> None:
    found = text(
        of(EventKind.FAILURE_GROUP_NEW), of(EventKind.RUN_STOPPED, Stage.REMINDED), of(EventKind.BREAKER_OPEN),
        of(EventKind.DLQ_GROWING),
    )  # fmt: skip
    assert found.title == "[production] Circuit breaker open: the-target (and 3 more)"
    firsts = [part.splitlines()[0].split(":")[0] for part in found.body.split("\n\n")]
    assert firsts == [
        "Circuit breaker open", "Still", "New failure group in DLQ the-dlq", "DLQ grows faster than it drains",
    ]  # fmt: skip


def test_no_text_is_longer_than_chats_accept() -> None:
    facts: dict[str, Any] = {"target": "x" * 300, "why": "y" * 300}
    long = TextSection(EventKind.BREAKER_OPEN, Stage.OPENED, 9, [told(EventKind.BREAKER_OPEN, **facts)] * 3)
    found = text(*[long] * 5, place="p" * 40)
    assert (len(found.body), len(found.title)) == (LONGEST_BODY, LONGEST_TITLE)
    assert found.body.endswith("The admin shows the rest.")


def test_braces_in_a_fact_are_kept() -> None:
    assert "{seconds}" in text(of(EventKind.BREAKER_OPEN, why="{seconds} {0} {")).body


def test_a_name_keeps_its_full_stop_and_a_reason_does_not() -> None:
    found = text(of(EventKind.BREAKER_OPEN, target="orders.", why="5 failures.."))
    assert found.title == "[production] Circuit breaker open: orders."
    assert "Reason: 5 failures. Waiting" in found.body


def test_without_an_address_there_is_no_link() -> None:
    found = compose([of(EventKind.BEAT_SILENT)], place="", link=lambda _model, _row: "")
    assert (found.link, found.title) == ("", "Beat is silent for 7 s")
    assert "http" not in found.body


def test_a_test_notification_says_that_nothing_has_happened() -> None:
    found = trial_text("production", "ops", link)
    assert found.title == "[production] Test notification"
    assert found.body == (
        "This is a test of the destination ops. Nothing has happened.\n"
        "What the service does: it has sent this test because a person ran test_notification.\n"
        "What you can do: nothing. Notifications of this service arrive here.\n"
        "https://redrive.example.com//"
    )
    assert (found.tone, found.link) == (Tone.INFO, "https://redrive.example.com//")


@pytest.mark.parametrize(("seconds", "said"), [(40, "40 s"), (720, "12 min"), (7_200, "2 h"), (259_200, "3 days")])
def test_a_duration_is_told_in_the_unit_that_fits(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_several_incidents_are_counted_and_end_together() -> None:
    kind, end = EventKind.BREAKER_OPEN, NOON + timedelta(minutes=12)
    two = [told(kind, str(number), end, target=f"t{number}", breaker_id=number) for number in (1, 2)]
    opened, ended = (text(TextSection(kind, stage, 2, two)) for stage in (Stage.OPENED, Stage.ENDED))
    assert opened.title == "[production] Circuit breaker open: t1 (and 1 more)"
    assert opened.body.splitlines()[0] == "2 circuit breakers open:"
    assert opened.body.splitlines()[-1] == "https://redrive.example.com/breaker/"
    assert opened.link == "https://redrive.example.com/breaker/1"
    assert ended.body.splitlines() == [
        "2 circuit breakers open, ended:",
        "Circuit breaker closed: t1. It began at 2026-01-02 12:00 UTC and lasted 12 min.",
        "Circuit breaker closed: t2. It began at 2026-01-02 12:00 UTC and lasted 12 min.",
        "https://redrive.example.com/breaker/",
    ]
