"""A dlq's policy is changed by a person with a reason, and never over what somebody else wrote."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django_celery_beat.models import IntervalSchedule
from pytest_django import DjangoCaptureOnCommitCallbacks

from reprocessing.domain.lifecycle import LanePhase, LetterState
from reprocessing.models import DeadLetterQueue, Review, Target
from reprocessing.models.dead_letter_queue import Mode
from reprocessing.models.lanes import clock
from reprocessing.models.target import Proof
from tests.reprocessing.admin.lot import dlq, person, post
from tests.reprocessing.commands.stock import add_lane, add_letter

pytestmark = pytest.mark.django_db
CHANGES = ("view_deadletterqueue", "change_deadletterqueue")


@pytest.fixture
def watched() -> DeadLetterQueue:
    """A dlq with a policy."""
    return dlq().dlq


def address(row: DeadLetterQueue) -> str:
    return f"/admin/reprocessing/deadletterqueue/{row.pk}/change/"


def form(client: Client, row: DeadLetterQueue) -> dict[str, Any]:
    """The form as its page was filled in."""
    answer = client.get(address(row))
    bound = answer.context["adminform"].form
    filled = {name: bound[name].value() for name in bound.fields}
    return {name: value for name, value in filled.items() if value not in {None, False}} | {"why": "a slow consumer"}


def errors(page: str) -> list[str]:
    return re.findall(r'<ul class="errorlist[^>]*><li>(.*?)</li>', page)


def test_a_change_is_written_with_who_why_before_and_after(watched: DeadLetterQueue) -> None:
    client = person("ann", *CHANGES)
    page = post(client, address(watched), **form(client, watched) | {"max_attempts": 5, "parked_head": "hold"})
    watched.refresh_from_db()

    assert [errors(page), watched.max_attempts, watched.parked_head] == [[], 5, "hold"]
    assert list(Review.objects.values("act", "dlq", "by", "reason", "before", "after")) == [
        {
            "act": "changed",
            "dlq": watched.pk,
            "by": "ann",
            "reason": "a slow consumer",
            "before": {"max_attempts": 3, "parked_head": "aside"},
            "after": {"max_attempts": 5, "parked_head": "hold"},
        }
    ]


def test_what_beat_wrote_since_the_page_was_opened_stays(
    watched: DeadLetterQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = person("ann", *CHANGES)
    filled = form(client, watched) | {"max_attempts": 5}
    save, drained = DeadLetterQueue.save, clock()

    def late(row: DeadLetterQueue, *, update_fields: list[str]) -> None:
        DeadLetterQueue.objects.filter(pk=row.pk).update(drained_through=drained, fence=7)
        save(row, update_fields=update_fields)

    monkeypatch.setattr(DeadLetterQueue, "save", late)
    post(client, address(watched), **filled)
    watched.refresh_from_db()

    assert [watched.drained_through, watched.fence, watched.max_attempts] == [drained, 7, 5]


def test_a_page_opened_before_somebody_elses_change_changes_nothing(watched: DeadLetterQueue) -> None:
    ann, ben = person("ann", *CHANGES), person("ben", *CHANGES)
    opened = form(ben, watched)
    post(ann, address(watched), **form(ann, watched) | {"max_attempts": 5})
    page = post(ben, address(watched), **opened | {"backoff_base": 10})
    watched.refresh_from_db()

    assert errors(page) == [
        "Nothing was changed: somebody else changed this policy since you opened it. Open it again."
    ]
    assert [watched.max_attempts, watched.backoff_base, Review.objects.count()] == [5, 60, 1]


def test_a_page_saved_without_a_change_records_nothing(watched: DeadLetterQueue) -> None:
    client = person("ann", *CHANGES)
    post(client, address(watched), **form(client, watched))

    assert Review.objects.count() == 0


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("why", "", "This field is required."),
        ("why", "  ", "This field is required."),
        ("mode", "automatic", "A dlq is examined before it redrives itself: manage.py add_dlq"),
        ("max_attempts", "0", "a_dlq_allows_one_attempt"),
        ("backoff_cap", "1", "It is less than where the backoff begins."),
        ("backoff_base", "nan", "Enter a number."),
        ("quiet_for", "-1", "A duration lasts from 0 to 1,209,600 seconds: two weeks."),
        ("quiet_for", "1e300", "A duration lasts from 0 to 1,209,600 seconds: two weeks."),
        ("backoff_cap", "1e13", "A duration lasts from 0 to 1,209,600 seconds: two weeks."),
        ("custody_limit", "120001", "SQS holds at most 120,000 messages of one queue in flight."),
    ],
)
def test_what_cannot_be_a_policy_is_refused_in_a_sentence(
    watched: DeadLetterQueue, field: str, value: str, sentence: str
) -> None:
    client = person("ann", *CHANGES)
    page = post(client, address(watched), **form(client, watched) | {field: value})

    assert [len(errors(page)), sentence in errors(page)[0], Review.objects.count()] == [1, True, 0]


@pytest.mark.parametrize("days", [15, 2_147_483_647])
def test_an_interval_comes_round_before_sqs_drops_its_letters(watched: DeadLetterQueue, days: int) -> None:
    client, interval = person("ann", *CHANGES), IntervalSchedule.objects.create(every=days, period="days")
    page = post(client, address(watched), **form(client, watched) | {"interval": interval.pk})

    assert errors(page) == ["Two weeks at most: SQS keeps no message for longer."]


def test_a_new_schedule_begins_anew(watched: DeadLetterQueue) -> None:
    client, interval = person("ann", *CHANGES), IntervalSchedule.objects.create(every=5, period="minutes")
    DeadLetterQueue.objects.filter(pk=watched.pk).update(next_poll_at=clock())
    post(client, address(watched), **form(client, watched) | {"interval": interval.pk})
    watched.refresh_from_db()

    assert [watched.interval, watched.next_poll_at] == [interval, None]


def test_lanes_held_by_the_old_policy_go_on_under_the_new_one(
    watched: DeadLetterQueue, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    client, origin = person("ann", *CHANGES), watched.origins.get()
    DeadLetterQueue.objects.filter(pk=watched.pk).update(parked_head="hold")
    lane = add_lane(origin, LanePhase.HELD)
    for state in (LetterState.PARKED, LetterState.WAITING):
        add_letter(origin, state, lane=lane)
    with django_capture_on_commit_callbacks(execute=True):
        post(client, address(watched), **form(client, watched) | {"parked_head": "aside"})
    lane.refresh_from_db()

    assert lane.phase == "ready"


def test_what_sent_letters_wait_for_is_not_changed_here(watched: DeadLetterQueue) -> None:
    client, target = person("ann", *CHANGES, "view_target", "change_target"), watched.origins.get().target
    Target.objects.filter(pk=target.pk).update(watched_by=watched)
    page = f"/admin/reprocessing/target/{target.pk}/change/"

    assert b'name="watched_by"' not in client.get(page).content
    assert client.post(page, {"watched_by": "", "proof": "accepted"}).status_code == 403
    assert Target.objects.get(pk=target.pk).watched_by == watched


def test_a_dlq_whose_silence_is_evidence_has_to_be_received_from(watched: DeadLetterQueue) -> None:
    client = person("ann", *CHANGES)
    target = watched.origins.get().target
    target.watched_by, target.proof = watched, Proof.ABSENCE
    target.save()
    page = post(client, address(watched), **form(client, watched) | {"mode": "observe"})
    target.proof = Proof.ACCEPTED
    target.save()
    post(client, address(watched), **form(client, watched) | {"mode": "observe"})
    watched.refresh_from_db()

    assert errors(page)[0].startswith("Letters are presumed delivered because they do not come back")
    assert watched.mode == Mode.OBSERVE


def test_a_policy_is_changed_by_those_who_may(watched: DeadLetterQueue) -> None:
    client = person("ann", "view_deadletterqueue")
    answer = client.get(address(watched))

    assert [answer.status_code, b"_save" in answer.content] == [200, False]
    assert client.get(f"{address(watched)[:-7]}delete/").status_code == 403
