"""A bulk action acts once on every letter that its filter matches, also when workers are killed."""

from __future__ import annotations

from collections import Counter
from uuid import uuid4

import pytest

from reprocessing import tasks
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.models import AuditEntry, BulkAction, BulkActionKind, FailureGroup, Letter, Source, Target
from reprocessing.pipeline.parking_lot import act_on_parked, run_bulk_actions
from reprocessing.store.ordering import lanes
from reprocessing.store.parking_lot import bulk_actions, filtered_letters, merged_groups
from reprocessing.store.search import late_letters
from tests.race.abreast import together
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, failure_group, parked
from tests.reprocessing.pipeline.bench import Clock, Killed
from tests.reprocessing.post import Post, post

__all__ = ["post"]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_actions, "BATCH_LETTERS", 2)


def _asked(
    act: BulkActionKind = BulkActionKind.DISCARD, criteria: MessageFilter | None = None, **arguments: object
) -> BulkAction:
    assert bulk_actions.create(uuid4(), act, criteria or MessageFilter(), arguments, by="ann", reason="test data")
    return BulkAction.objects.latest("id")


def _done(
    act: BulkActionKind = BulkActionKind.DISCARD, criteria: MessageFilter | None = None, **arguments: object
) -> BulkAction:
    operation = _asked(act, criteria, **arguments)
    run_bulk_actions.run_bulk_action(operation.pk, seconds=9)
    return operation


def _told(operation: BulkAction) -> tuple[str, int, int, int]:
    operation.refresh_from_db()
    return operation.state, operation.asked, operation.done, operation.letters_skipped


def _five_parked() -> list[Letter]:
    source = dlq()
    return [parked(source) for _ in range(5)]


def _reviewed(operation: BulkAction) -> Counter[int | None]:
    return Counter(
        AuditEntry.objects.filter(operation=operation).exclude(letter=None).values_list("letter_id", flat=True)
    )


def test_every_letter_that_the_filter_means_is_done_once_with_who_and_why() -> None:
    source, other = dlq(), dlq("other")
    meant, left = [parked(source) for _ in range(5)], parked(other)
    operation = _asked(criteria=MessageFilter(dlq=source.dlq_id))
    assert run_bulk_actions.run_bulk_action(operation.pk, seconds=9) is False
    assert _told(operation) == ("done", 5, 5, 0)
    assert _reviewed(operation) == dict.fromkeys([one.pk for one in meant], 1)
    assert set(AuditEntry.objects.values_list("act", "by", "reason")) == {("discarded", "ann", "test data")}
    assert Letter.objects.get(state="parked") == left


@pytest.mark.parametrize(
    ("act", "arguments", "state", "assigned"),
    [
        (BulkActionKind.RELEASE, {}, "waiting", ""), (BulkActionKind.NOTE, {}, "parked", ""),
        (BulkActionKind.ASSIGN, {"to": "ben"}, "parked", "ben"),
    ],
)  # fmt: skip
def test_each_act_is_done(act: BulkActionKind, arguments: dict[str, str], state: str, assigned: str) -> None:
    letters = [parked(dlq(f"dlq-{number}")) for number in range(3)]
    operation = _done(act, None, **arguments)
    assert _told(operation) == ("done", 3, 3, 0)
    assert set(Letter.objects.values_list("state", "assigned_to")) == {(state, assigned)}
    assert _reviewed(operation) == dict.fromkeys([letter.pk for letter in letters], 1)


def test_letters_that_somebody_assigned_since_it_was_asked_for_are_theirs() -> None:
    source = dlq()
    before, taken, freed, left = [parked(source) for _ in range(4)]
    act_on_parked.assign([before.pk], to="ann", by="ann", reason="mine")
    operation = _asked(BulkActionKind.ASSIGN, None, to="ben")
    act_on_parked.assign([taken.pk], to="cleo", by="cleo", reason="I am at it")
    act_on_parked.assign([freed.pk], to="", by="dora", reason="nobody is at it")
    run_bulk_actions.run_bulk_action(operation.pk, seconds=9)
    assert _told(operation) == ("done", 4, 2, 2)
    assert operation.refusals == {
        str(taken.pk): "cleo assigned it to cleo since", str(freed.pk): "dora assigned it to nobody since",
    }  # fmt: skip
    whose = Letter.objects.order_by("id").values_list("assigned_to", flat=True)
    assert (list(whose), _reviewed(operation)) == (["ben", "cleo", "", "ben"], {before.pk: 1, left.pk: 1})


def test_letters_are_released_at_the_time_and_to_the_target_that_were_asked_for() -> None:
    here, there = dlq("here"), dlq("there")
    parked(here)
    due = lanes.database_now().replace(microsecond=0)
    _done(BulkActionKind.RELEASE, due=due.isoformat(), target=there.target.pk)
    letter = Letter.objects.get()
    assert (letter.state, letter.due_at, letter.target) == ("waiting", due, there.target)


def test_what_was_discarded_is_restored_at_once() -> None:
    source = dlq()
    letters = [parked(source, reason=reason) for reason in ("stale", "refused", "stale")]
    act_on_parked.discard([letter.pk for letter in letters], by="ann", reason="test data")
    _done(BulkActionKind.RESTORE, MessageFilter(states=("discarded",)))
    found = Letter.objects.order_by("id").values_list("state", "reason")
    assert list(found) == [("parked", "stale"), ("parked", "refused"), ("parked", "stale")]


def test_asked_twice_with_one_token_it_is_one_operation() -> None:
    parked(dlq())
    token = uuid4()
    asked = [
        bulk_actions.create(token, BulkActionKind.NOTE, MessageFilter(), {}, by="ann", reason="a note")
        for _ in range(2)
    ]
    assert (asked, BulkAction.objects.count()) == ([True, False], 1)


def test_what_arrives_later_is_left_alone_and_counted() -> None:
    source = dlq()
    early, anew = parked(source), parked(source)
    operation = _asked()
    parked(source)
    Letter.objects.filter(pk=anew.pk).update(finished_at=lanes.database_now())
    run_bulk_actions.run_bulk_action(operation.pk, seconds=9)
    assert _told(operation) == ("done", 2, 1, 0)
    assert Letter.objects.get(state="discarded") == early
    late = late_letters.count_late(operation.pk, MessageFilter(), asked_at=operation.asked_at)
    assert (late.n, late.is_lower_bound) == (2, False)


def test_what_cannot_be_done_is_left_alone_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_actions, "MAX_SKIP_REASONS", 3)
    letters = _five_parked()
    fifo = Target.objects.create(arn="arn:aws:sqs:eu-west-1:0:x.fifo", url="http://127.0.0.1:9", region="x", fifo=True)
    operation = _done(BulkActionKind.RELEASE, target=fifo.pk)
    assert _told(operation) == ("done", 5, 0, 5)
    assert list(operation.refusals) == [str(letter.pk) for letter in letters[:3]]
    assert all(why.startswith("the other target is FIFO") for why in operation.refusals.values())


@pytest.mark.soak
def test_who_is_killed_within_a_batch_leaves_nothing_half_done(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, post: Post
) -> None:
    letters = _five_parked()
    operation = _asked()
    count, batches = bulk_actions.record_batch, 0

    def dies(*arguments: object, **named: object) -> None:
        nonlocal batches
        batches += 1
        if batches == 2:
            raise Killed
        count(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(bulk_actions, "record_batch", dies)
    with pytest.raises(Killed):
        run_bulk_actions.run_bulk_action(operation.pk, seconds=9)
    assert _told(operation) == ("running", 5, 2, 0)
    assert Letter.objects.filter(state="discarded").count() == 2

    tasks.tick()
    assert post.of("run_bulk_action") == []  # whoever had it could be at work
    clock.advance(bulk_actions.LEASE_SECONDS + 1)
    tasks.tick()
    assert post.of("run_bulk_action") == [(operation.pk,)]
    post.work_off()
    assert _told(operation) == ("done", 5, 5, 0)
    assert _reviewed(operation) == dict.fromkeys([letter.pk for letter in letters], 1)


def test_a_tick_sets_it_going_and_tells_one_worker_of_it(post: Post) -> None:
    parked(dlq())
    operation = _asked()
    for _ in range(2):
        tasks.tick()
    assert post.of("run_bulk_action") == [(operation.pk,)]
    post.work_off()
    assert _told(operation) == ("done", 1, 1, 0)
    tasks.tick()
    assert post.of("run_bulk_action") == []


def test_a_turn_that_was_not_enough_is_followed_by_another(monkeypatch: pytest.MonkeyPatch, post: Post) -> None:
    _five_parked()
    monkeypatch.setattr(tasks, "BULK_ACTION_SLICE", 0.0)
    operation = _asked()
    tasks.run_bulk_action(operation.pk)
    assert (_told(operation), post.of("run_bulk_action")) == (("running", 5, 2, 0), [(operation.pk,)])
    post.work_off()
    assert _told(operation) == ("done", 5, 5, 0)


def test_two_workers_never_do_one_batch_twice() -> None:
    source = dlq()
    letters = [parked(source) for _ in range(12)]
    operation = _asked(BulkActionKind.NOTE)
    together([lambda: run_bulk_actions.run_bulk_action(operation.pk, seconds=9)] * 3)
    assert _told(operation) == ("done", 12, 12, 0)
    assert _reviewed(operation) == dict.fromkeys([letter.pk for letter in letters], 1)


def test_a_worker_that_lost_a_bulk_action_does_nothing_more() -> None:
    _five_parked()
    operation = _asked(BulkActionKind.NOTE)
    mine, theirs = bulk_actions.take_over(operation.pk), bulk_actions.take_over(operation.pk)
    assert mine
    assert theirs
    assert (bulk_actions.renew_lease(mine), bulk_actions.renew_lease(theirs) is None) == (None, False)


def test_it_is_aborted_between_two_batches_and_what_was_done_stays_done() -> None:
    _five_parked()
    operation = _asked()
    assert run_bulk_actions.run_bulk_action(operation.pk, seconds=0) is True
    assert [bulk_actions.abort(operation.pk, by="ben", why=why) for why in ("wrong dlq", "again")] == [True, False]
    assert run_bulk_actions.run_bulk_action(operation.pk, seconds=9) is False
    assert _told(operation) == ("aborted", 5, 2, 0)
    assert (operation.aborted_by, operation.why) == ("ben", "wrong dlq")
    assert Letter.objects.filter(state="parked").count() == 3


@pytest.mark.soak
def test_the_list_the_count_and_the_operation_mean_the_same_letters() -> None:
    here, there = dlq("here"), dlq("there")
    kinds = ((here, "stale", "a"), (here, "refused", "a"), (there, "stale", "b"), (there, "stale", None))
    for source, reason, key in kinds:
        parked(source, reason=reason, key=key, body=f"{reason} of {key}".encode())
    Letter.objects.filter(ordering_key="b").update(assigned_to="ben")
    letter = Letter.objects.earliest("id")
    for criteria in (
        MessageFilter(), MessageFilter(dlq=there.dlq_id), MessageFilter(reasons=("stale",)), MessageFilter(key="a"),
        MessageFilter(named="a"),
        MessageFilter(text="of a"), MessageFilter(named=letter.message_id), MessageFilter(named=str(letter.public_id)),
        MessageFilter(assigned="ben"), MessageFilter(assigned=""), MessageFilter(sent_before=letter.first_sent_at),
        MessageFilter(finished_after=letter.finished_at), MessageFilter(group=7), MessageFilter(rule=7),
        MessageFilter(source=here.pk), MessageFilter(run=7),
        MessageFilter(target=here.target_id), MessageFilter(states=("discarded",)),
        MessageFilter(text="of a", reasons=("stale",)),
        MessageFilter(states=("parked", "discarded"), dlq=here.dlq_id),
    ):  # fmt: skip
        listed = {one.id for one in filtered_letters.newest_letters(criteria, limit=50)}
        operation = _done(BulkActionKind.NOTE, criteria)
        assert set(_reviewed(operation)) == listed, criteria
        counted = (
            filtered_letters.count_letters(criteria),
            sum(kind.n for kind in filtered_letters.counts_by_reason(criteria)),
            operation.asked,
        )
        assert set(counted) == {len(listed)}


def _grouped(source: Source, group: FailureGroup, n: int) -> list[Letter]:
    letters = [parked(source) for _ in range(n)]
    ids = [letter.pk for letter in letters]
    Letter.objects.filter(pk__in=ids).update(group=group, grouped_at=lanes.database_now())
    return letters


def _states(letters: list[Letter]) -> set[str]:
    return set(Letter.objects.filter(pk__in=[letter.pk for letter in letters]).values_list("state", flat=True))


def _merge(group: FailureGroup, into: FailureGroup) -> None:
    assert merged_groups.merge_groups([group.pk], into=into.pk, by="cleo", reason="the same") == ""


def test_a_bulk_action_changes_no_message_of_a_group_merged_after_it_began() -> None:
    source = dlq()
    group, earlier, later = (failure_group(source, title) for title in ("a", "b", "c"))
    joined, part, own = (_grouped(source, one, 2) for one in (later, earlier, group))
    _merge(earlier, group)
    operation = _asked(criteria=MessageFilter(group=group.pk))
    _merge(later, group)
    run_bulk_actions.run_bulk_action(operation.pk, seconds=9)
    assert (_told(operation), _states(part + own), _states(joined)) == (("done", 4, 4, 0), {"discarded"}, {"parked"})


def test_a_bulk_action_changes_no_message_of_a_group_merged_after_the_preview() -> None:
    source = dlq()
    group, other = failure_group(source, "a"), failure_group(source, "b")
    joined, own = _grouped(source, other, 2), _grouped(source, group, 2)
    opened = lanes.database_now()
    _merge(other, group)
    assert bulk_actions.create(
        uuid4(), BulkActionKind.DISCARD, MessageFilter(group=group.pk), {}, by="ann", reason="test data",
        opened=opened, previewed=2,
    )  # fmt: skip
    operation = BulkAction.objects.get()
    run_bulk_actions.run_bulk_action(operation.pk, seconds=9)
    assert (_told(operation), _states(own), _states(joined)) == (("done", 2, 2, 0), {"discarded"}, {"parked"})


@pytest.mark.parametrize("is_unsure", [False, True])
def test_a_bulk_action_changes_no_message_that_was_put_into_its_group_after_it_began(is_unsure: bool) -> None:
    source = dlq()
    group = failure_group(source)
    joined, own = [parked(source)], _grouped(source, group, 1)
    operation = _asked(criteria=MessageFilter(group=group.pk))
    at = None if is_unsure else lanes.database_now()
    Letter.objects.filter(pk=joined[0].pk).update(group=group, grouped_at=at)
    run_bulk_actions.run_bulk_action(operation.pk, seconds=9)
    assert (_told(operation), _states(own), _states(joined)) == (("done", 1, 1, 0), {"discarded"}, {"parked"})


def test_discarded_messages_of_a_group_are_restored_also_if_their_group_was_to_be_found_again() -> None:
    source = dlq()
    group = failure_group(source)
    letters = _grouped(source, group, 2)
    _done(criteria=MessageFilter(group=group.pk))
    Letter.objects.update(grouped_at=None)
    _done(BulkActionKind.RESTORE, MessageFilter(states=("discarded",), group=group.pk))
    assert _states(letters) == {"parked"}
