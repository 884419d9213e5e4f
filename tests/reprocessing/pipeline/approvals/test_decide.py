"""An action above a DLQ's limit is done by two people, exactly as it was requested, once, or not at all."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from unittest import mock
from uuid import NAMESPACE_OID, uuid4, uuid5

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from reprocessing import conf
from reprocessing.domain.approvals.requested_action import ApprovalNeeded, ApprovalRefused, RequestedAction
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.models import (
    Approval,
    ApprovalDefault,
    AuditAct,
    AuditEntry,
    BulkAction,
    BulkActionKind,
    DeadLetterQueue,
    Incident,
    Lane,
    Letter,
    Payload,
    Revision,
    Rule,
    Run,
    UnapprovedAction,
)
from reprocessing.pipeline.approvals import decide, request
from reprocessing.pipeline.approvals.decide import Done, NotDone
from reprocessing.pipeline.aws import native_redrive
from reprocessing.pipeline.parking_lot import act_on_parked, edit, run_bulk_actions
from reprocessing.pipeline.parking_lot.edit import Alteration, Edited, SeenLetter
from reprocessing.store.approvals import default_limit, requests
from reprocessing.store.dlqs import registration
from reprocessing.store.dlqs.dlq_proposal import DlqProposal
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.parking_lot import bulk_actions, message_edits
from reprocessing.store.payloads import removal
from reprocessing.store.routing import rule_changes
from reprocessing.store.runs import leftover_lanes, run_transitions
from reprocessing.store.search import stored_filters
from tests.race.abreast import together
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, parked
from tests.reprocessing.payload_rings import Rings
from tests.reprocessing.pipeline.approvals.two_people import approved, asked, limited, states

pytestmark = pytest.mark.django_db(transaction=True)

ANN: dict[str, Any] = {"by": "ann", "reason": "obsolete"}


def _ids(letters: list[Letter]) -> list[int]:
    return [letter.pk for letter in letters]


def _edit(letter: Letter, *, by: str = "ann", replay: bool = False) -> object:
    letter.refresh_from_db()
    assert letter.finished_at
    seen = SeenLetter(letter.finished_at, letter.revision.no if letter.revision else 0)
    return edit.edit_letter(
        letter.pk, seen, Alteration(b'{"edited": true}', {}), names=conf.current().marks, by=by, reason="a typo",
        replay=replay,
    )  # fmt: skip


def _rule(name: str = "hold", **fields: object) -> object:
    return rule_changes.save_rule(name, {"action": "hold", "conditions": [], "enabled": True, **fields}, **ANN)


def test_without_a_limit_one_person_acts_and_nothing_is_counted() -> None:
    letter = parked(dlq())
    assert act_on_parked.discard([letter.pk], **ANN).done == (letter.pk,)
    assert not UnapprovedAction.objects.exists()


def test_one_person_cannot_discard_more_than_the_limit_at_once_or_in_parts() -> None:
    letters = limited(3, letters=5)
    with pytest.raises(ApprovalNeeded):
        act_on_parked.discard(_ids(letters), **ANN)
    assert act_on_parked.discard(_ids(letters[:2]), **ANN).done
    assert act_on_parked.discard(_ids(letters[2:3]), by="ANN ", reason="obsolete").done
    for by in ("ann", "Ann", " ANN", "ａｎｎ"):  # noqa: RUF001  another form of the same letters
        with pytest.raises(ApprovalNeeded):
            act_on_parked.discard(_ids(letters[3:4]), by=by, reason="obsolete")
    assert act_on_parked.discard(_ids(letters[3:4]), by="bob", reason="obsolete").done


def test_what_one_person_did_alone_counts_for_a_day() -> None:
    letters = limited(1, letters=2)
    act_on_parked.discard(_ids(letters[:1]), **ANN)
    UnapprovedAction.objects.update(at=database_now() - timedelta(days=1))
    assert act_on_parked.discard(_ids(letters[1:]), **ANN).done


def test_two_small_actions_at_the_same_time_are_not_both_within_the_limit() -> None:
    letters = limited(1, letters=2)

    def discard(letter: Letter) -> bool:
        try:
            return bool(act_on_parked.discard([letter.pk], **ANN).done)
        except ApprovalNeeded:
            return False

    assert sorted(together([lambda one=one: discard(one) for one in letters])) == [False, True]  # type: ignore[misc]


def test_the_limit_for_all_holds_for_dlqs_without_their_own() -> None:
    letters = [parked(dlq()), *limited(5, name="other")]
    default_limit.set_default(0, **ANN)
    with pytest.raises(ApprovalNeeded):
        act_on_parked.discard(_ids(letters[:1]), **ANN)
    assert act_on_parked.discard(_ids(letters[1:]), **ANN).done


def test_an_approved_action_is_done_with_both_names_in_every_history() -> None:
    letters = limited(1, letters=3)
    row = asked(lambda: act_on_parked.discard(_ids(letters), **ANN))
    assert (states(letters), row.messages, row.state) == ({"parked"}, 3, "open")
    assert approved(row) == Done("3 messages discarded.")
    assert states(letters) == {"discarded"}
    by = AuditEntry.objects.exclude(letter=None).values_list("by", "reason").distinct().get()
    assert by == ("ann, approved by bob", "obsolete")
    told = list(AuditEntry.objects.filter(letter=None).order_by("pk").values_list("act", "by", "reason", "dlq__name"))
    assert told == [("requested", "ann", "obsolete", "shop-dlq"), ("approved", "bob", "I looked", "shop-dlq")]


@pytest.mark.parametrize("name", ["ann", "Ann", "ANN", " ann ", "ａｎｎ", "a\u200bnn"])  # noqa: RUF001  as above
def test_the_requester_cannot_approve_under_any_variant_of_the_name(name: str) -> None:
    letters = limited()
    row = asked(lambda: act_on_parked.discard(_ids(letters), **ANN))
    said = "Nothing was done: ann made the request, so somebody else must approve it."
    assert approved(row, by=name) == NotDone(said)
    assert states(letters) == {"parked"}


def test_a_second_account_with_the_same_address_is_the_same_person() -> None:
    User.objects.create_user("ann", email="ann@example.com")
    User.objects.create_user("ann-admin", email="Ann@example.com")
    row = asked(lambda: act_on_parked.discard(_ids(limited()), **ANN))
    assert isinstance(approved(row, by="ann-admin"), NotDone)


def test_what_a_person_does_alone_with_a_second_account_of_the_same_address_counts() -> None:
    User.objects.create_user("ann", email="ann@example.com")
    User.objects.create_user("ann-admin", email="Ann@example.com")
    letters = limited(1, letters=2)
    act_on_parked.discard(_ids(letters[:1]), **ANN)
    with pytest.raises(ApprovalNeeded):
        act_on_parked.discard(_ids(letters[1:]), by="ann-admin", reason="obsolete")


def test_the_database_refuses_an_approval_by_the_requester() -> None:
    row = asked(lambda: act_on_parked.discard(_ids(limited()), **ANN))
    change = {"state": "approved", "ended_at": database_now(), "decided_key": "ann", "decision_reason": "me"}
    with pytest.raises(IntegrityError, match="approver_is_not_the_requester"), transaction.atomic():
        Approval.objects.filter(pk=row.pk).update(**change)


def _discard_one(letter: Letter) -> None:
    Letter.objects.filter(pk=letter.pk).update(state="discarded", reason="")


def _edit_one(letter: Letter) -> None:
    revision = Revision.objects.create(
        letter=letter, no=1, body=b"x", attributes=b"[]", body_hash=b"x", previous_body_hash=b"y", size=1, by="cleo",
        reason="a typo",
    )  # fmt: skip
    Letter.objects.filter(pk=letter.pk).update(revision=revision, epoch=1)


def _park_again(letter: Letter) -> None:
    Letter.objects.filter(pk=letter.pk).update(finished_at=database_now())


@pytest.mark.parametrize("change", [_discard_one, _edit_one, _park_again])
def test_one_changed_message_makes_the_request_void(change: object) -> None:
    letters = limited(letters=3)
    row = asked(lambda: act_on_parked.discard(_ids(letters), **ANN))
    change(letters[1])  # type: ignore[operator]
    done = approved(row)
    assert isinstance(done, NotDone)
    assert "At least one message changed, appeared or vanished after" in done.why
    assert states([letters[0], letters[2]]) == {"parked"}
    row.refresh_from_db()
    assert (row.state, row.used_at) == ("void", None)
    assert "decided before" in str(approved(row))


def test_a_message_that_appears_or_vanishes_makes_a_bulk_request_void() -> None:
    letters = limited(letters=2)
    criteria = MessageFilter(states=("parked",), dlq=letters[0].dlq_id)

    def discard() -> None:
        bulk_actions.create(uuid4(), BulkActionKind.DISCARD, criteria, {}, **ANN)

    row = asked(discard)
    assert letters[0].source
    new = parked(letters[0].source)
    assert "there were 2, and there are 3. Request it again." in str(approved(row))
    again = asked(discard)
    _discard_one(new)
    assert "there were 3, and there are 2. Request it again." in str(approved(again))
    assert not BulkAction.objects.exists()


def test_what_changed_since_a_request_counts_no_message_of_another_dlq() -> None:
    letters = limited(letters=2)
    row = asked(lambda: _bulk(MessageFilter(states=("parked",))))
    parked(dlq("theirs"))
    assert "and there are" not in decide.changed_since(row)
    assert decide.changed_since(row).endswith(": still 2. Request it again.")
    assert (isinstance(approved(row), NotDone), states(letters)) == (True, {"parked"})


def test_an_approved_bulk_action_starts_although_its_token_was_used() -> None:
    letters = limited(letters=2)
    row = asked(lambda: _bulk(MessageFilter(states=("parked",))))
    token = uuid5(NAMESPACE_OID, f"approval {row.pk}")
    assert bulk_actions.create(token, BulkActionKind.NOTE, MessageFilter(), {}, by="cleo", reason="mine")
    assert isinstance(approved(row), Done)
    run_bulk_actions.run_bulk_action(BulkAction.objects.get(act="discard").pk, seconds=9)
    assert states(letters) == {"discarded"}


def test_an_approval_whose_bulk_action_does_not_start_is_void() -> None:
    limited(letters=2)
    row = asked(lambda: _bulk(MessageFilter(states=("parked",))))
    with mock.patch.object(bulk_actions, "create", return_value=False):
        assert isinstance(approved(row), NotDone)
    row.refresh_from_db()
    assert (row.state, row.used_at, BulkAction.objects.exists()) == ("void", None, False)


def test_the_audit_log_of_a_dlq_counts_no_message_of_another_dlq() -> None:
    letters = [*limited(letters=2), *limited(letters=3, name="theirs")]
    row = asked(lambda: act_on_parked.discard(_ids(letters), **ANN))
    approved(row)
    entries = AuditEntry.objects.filter(letter=None).order_by("pk").values_list("act", "dlq__name", "after__messages")
    assert list(entries) == [
        ("requested", "shop-dlq", 2), ("requested", "theirs", 3),
        ("approved", "shop-dlq", None), ("approved", "theirs", None),
    ]  # fmt: skip


def test_an_approved_bulk_action_discards_exactly_the_previewed_messages() -> None:
    letters = limited(letters=3)
    criteria = MessageFilter(states=("parked",), dlq=letters[0].dlq_id)
    row = asked(lambda: bulk_actions.create(uuid4(), BulkActionKind.DISCARD, criteria, {}, **ANN))
    assert isinstance(approved(row), Done)
    assert letters[0].source
    late = parked(letters[0].source)
    _edit_one(letters[2])
    action = BulkAction.objects.get()
    assert action.by == "ann, approved by bob"
    run_bulk_actions.run_bulk_action(action.pk, seconds=9)
    assert (states(letters[:2]), states([late, letters[2]])) == ({"discarded"}, {"parked"})


def _bulk(criteria: MessageFilter) -> None:
    bulk_actions.create(uuid4(), BulkActionKind.DISCARD, criteria, {}, **ANN)


def test_messages_that_are_assigned_after_the_request_are_not_discarded_with_the_assigned_ones() -> None:
    letters = limited(1, letters=4)
    act_on_parked.assign(_ids(letters[:1]), to="ann", **ANN)
    criteria = MessageFilter(states=("parked",), assigned="ann")
    _bulk(criteria)  # one message: within the limit
    act_on_parked.assign(_ids(letters), to="ann", by="ann", reason="more")
    run_bulk_actions.run_bulk_action(BulkAction.objects.get().pk, seconds=9)
    assert states(letters[1:]) == {"parked"}


def test_a_bulk_action_changes_no_more_messages_than_matched_when_it_was_confirmed() -> None:
    letters = limited(1, letters=4)
    target = letters[0].target_id
    Letter.objects.filter(pk__in=_ids(letters[1:])).update(target=None)
    _bulk(MessageFilter(states=("parked",), target=target))
    Letter.objects.update(target=target)
    run_bulk_actions.run_bulk_action(BulkAction.objects.get().pk, seconds=9)
    assert (BulkAction.objects.get().done, states(letters[1:])) == (1, {"parked"})


def test_a_text_that_a_requested_bulk_action_searches_for_is_encrypted(encrypted: Rings) -> None:
    letters = limited(letters=2)
    body = bytes(Payload.objects.get(letter=letters[0]).body)
    criteria = MessageFilter(states=("parked",), dlq=letters[0].dlq_id, text=body.decode())
    row = asked(lambda: _bulk(criteria))
    row.refresh_from_db()
    assert row.arguments["filter"]["text"].startswith("\x1a")
    assert requests.action_of(row).arguments["filter"]["text"] == criteria.text
    assert isinstance(approved(row), Done)
    assert stored_filters.read_filter(BulkAction.objects.get().filter) == criteria


def _two_runs() -> tuple[list[Letter], Run, Run]:
    """A plan with one captured letter, and a running run with two queued letters, of a DLQ with the limit 1."""
    letters = limited(1, letters=3)
    planned = Run.objects.create(name="monday", dlq=letters[0].dlq, selected=1)
    running = Run.objects.create(name="other", dlq=letters[0].dlq, state="running", started_at=database_now())
    free = {"reason": "", "finished_at": None}
    Letter.objects.filter(pk=letters[0].pk).update(state="captured", run=planned, key_hash=b"k", lane=None, **free)
    Letter.objects.filter(pk__in=_ids(letters[1:])).update(state="waiting", run=running, **free)
    Lane.objects.filter(pk__in=[letter.lane_id for letter in letters[1:]]).update(
        run=running, phase="ready", due_at=database_now()
    )
    return letters, planned, running


def _abort(run: Run) -> None:
    run_transitions.abort(run, by="ann", reason="no", stop_dlq=False)


def test_letters_of_a_run_that_is_aborted_at_this_moment_are_not_started_by_one_person() -> None:
    _, planned, running = _two_runs()
    adopt = leftover_lanes.adopt_leftovers

    def adopt_and_abort(dlq_id: int, run: int) -> bool:
        done = adopt(dlq_id, run)
        _abort(running)
        return done

    with mock.patch.object(leftover_lanes, "adopt_leftovers", adopt_and_abort), pytest.raises(ApprovalNeeded):
        run_transitions.start(planned, **ANN)
    planned.refresh_from_db()
    assert planned.state == "planned"


def test_an_approved_run_does_not_take_letters_of_a_run_that_is_aborted_at_this_moment() -> None:
    letters, planned, running = _two_runs()
    DeadLetterQueue.objects.update(approval_above=0)
    row = asked(lambda: run_transitions.start(planned, **ANN))
    difference = decide._difference

    def then_aborted(row: Approval, action: RequestedAction) -> str:
        why = difference(row, action)
        _abort(running)
        return why

    with mock.patch.object(decide, "_difference", then_aborted):
        done = approved(row)
    planned.refresh_from_db()
    assert (isinstance(done, NotDone), planned.state, states(letters[:1])) == (True, "planned", {"captured"})


def test_of_two_approvers_at_the_same_time_one_does_the_action() -> None:
    letters = limited(letters=2)
    row = asked(lambda: act_on_parked.discard(_ids(letters), **ANN))
    done = together([lambda: approved(row, by="bob"), lambda: approved(row, by="cleo")])
    assert sorted(isinstance(one, Done) for one in done) == [False, True]
    assert AuditEntry.objects.filter(act="discarded").count() == 2


def test_an_expired_request_cannot_be_approved() -> None:
    letters = limited()
    row = asked(lambda: act_on_parked.discard(_ids(letters), **ANN), lasts=timedelta(seconds=-1))
    assert "the request expired at" in str(approved(row))
    assert decide.end_expired() == 1
    row.refresh_from_db()
    assert (row.state, states(letters)) == ("expired", {"parked"})
    assert "decided before" in str(approved(row))
    assert "decided before" in str(decide.act_alone(row.pk, by="ann", reason="now", conf=conf.current()))


def test_a_declined_request_is_not_done_and_the_requester_may_withdraw() -> None:
    letters = limited()
    for by in ("bob", "ann"):
        row = asked(lambda: act_on_parked.discard(_ids(letters), **ANN))
        assert isinstance(decide.decline(row.pk, by=by, reason="no"), Done)
        assert isinstance(approved(row), NotDone)
    assert states(letters) == {"parked"}


def test_an_approval_covers_no_other_action_and_no_second_one() -> None:
    letters = limited(letters=2)
    row = asked(lambda: act_on_parked.discard(_ids(letters[:1]), **ANN))
    with pytest.raises(ApprovalRefused):
        act_on_parked.discard(_ids(letters[:1]), approval=row.pk, **ANN)  # it is not approved yet
    approved(row)
    Letter.objects.filter(pk=letters[0].pk).update(state="parked", reason="stale")
    for pk in (letters[0].pk, letters[1].pk):
        with pytest.raises(ApprovalRefused):
            act_on_parked.discard([pk], approval=row.pk, **ANN)


def test_an_unused_approval_covers_only_the_action_that_was_approved() -> None:
    letters = limited(letters=2)
    row = asked(lambda: act_on_parked.discard(_ids(letters[:1]), **ANN))
    said = {"decided_by": "bob", "decided_key": "bob", "decision_reason": "yes"}
    Approval.objects.filter(pk=row.pk).update(state="approved", ended_at=database_now(), **said)
    for action in (act_on_parked.release, act_on_parked.restore):
        Letter.objects.filter(pk=letters[0].pk).update(
            state="parked" if action is act_on_parked.release else "discarded",
            reason="stale" if action is act_on_parked.release else "",
        )
        with pytest.raises(ApprovalRefused):
            action(_ids(letters[:1]), approval=row.pk, **ANN)
    Letter.objects.filter(pk=letters[0].pk).update(state="parked", reason="stale")
    with pytest.raises(ApprovalRefused):
        act_on_parked.discard(_ids(letters), approval=row.pk, **ANN)
    assert act_on_parked.discard(_ids(letters[:1]), approval=row.pk, **ANN).done


def test_acting_alone_is_loud_in_the_log_and_as_a_notification() -> None:
    letters = limited(letters=2)
    row = asked(lambda: act_on_parked.discard(_ids(letters), **ANN))
    done = decide.act_alone(row.pk, by="ann", reason="the shop is down", conf=conf.current())
    assert done == Done("2 messages discarded.")
    assert AuditEntry.objects.exclude(letter=None).values_list("by", flat=True).distinct().get() == (
        "ann, without approval"
    )
    alone = AuditEntry.objects.get(act="acted_alone")
    assert (alone.by, alone.reason, alone.get_act_display()) == ("ann", "the shop is down", "ACTED WITHOUT APPROVAL")
    incident = Incident.objects.get(kind="acted_alone")
    assert (incident.facts["who"], incident.facts["why"], incident.dlq_id) == (
        "ann", "the shop is down", letters[0].dlq_id,
    )  # fmt: skip


def test_a_request_is_an_incident_that_ends_with_the_decision() -> None:
    row = asked(lambda: act_on_parked.discard(_ids(limited()), **ANN))
    incident = Incident.objects.get(kind="approval_requested")
    assert (incident.facts["by"], incident.facts["messages"], incident.ended_at) == ("ann", 1, None)
    approved(row)
    incident.refresh_from_db()
    assert incident.ended_at
    assert incident.facts["how"] == "approved and done, by bob"


def test_ended_requests_are_deleted_after_the_history_and_open_ones_stay() -> None:
    letters = limited(letters=2)
    first, second = _ids(letters)
    ended = asked(lambda: act_on_parked.discard([first], **ANN))
    still = asked(lambda: act_on_parked.discard([second], **ANN))
    decide.decline(ended.pk, by="bob", reason="no")
    UnapprovedAction.objects.create(dlq=letters[0].dlq, by_key="ann", messages=1, at=database_now() - timedelta(days=2))
    assert requests.delete_ended(history=60) == 0
    assert requests.delete_ended(history=-60) == 1
    assert (list(Approval.objects.all()), UnapprovedAction.objects.exists()) == ([still], False)


def test_the_same_form_sent_twice_makes_one_request() -> None:
    letters = limited()
    rows = {asked(lambda: act_on_parked.discard(_ids(letters), **ANN)).pk for _ in range(2)}
    assert len(rows) == 1


def test_an_edit_is_stored_while_it_waits_and_saved_as_it_was_requested() -> None:
    (letter,) = limited()
    row = asked(lambda: _edit(letter, replay=True), reason="a typo")
    assert bytes(row.body or b"") == b'{"edited": true}'
    assert approved(row) == Done("Edit 1 is saved. The message is queued.")
    revision = Revision.objects.get()
    assert (bytes(revision.body), revision.by) == (b'{"edited": true}', "ann, approved by bob")
    row.refresh_from_db()
    assert (row.body, row.attributes) == (None, None)
    letter.refresh_from_db()
    assert (letter.state, letter.released_by) == ("waiting", "ann, approved by bob")


def test_a_requested_edit_is_encrypted_as_messages_are(encrypted: Rings) -> None:
    (letter,) = limited()
    row = asked(lambda: _edit(letter), reason="a typo")
    assert row.body is not None
    assert b"edited" not in bytes(row.body)
    assert approved(row) == Done("Edit 1 is saved.")
    stand = message_edits.read_letter(letter.pk)
    assert stand is not None
    assert bytes(stand.body) == b'{"edited": true}'


def test_a_request_to_edit_a_message_that_is_erased_is_void(encrypted: Rings) -> None:
    (letter,) = limited()
    row = asked(lambda: _edit(letter), reason="a typo")
    with transaction.atomic():
        removal.remove_content([letter.pk], AuditAct.ERASED, by="eve", reason="article 17")
    row.refresh_from_db()
    assert (row.state, row.body, row.attributes) == ("void", None, None)


def test_an_edit_of_a_message_that_was_erased_meanwhile_is_not_stored() -> None:
    (letter,) = limited()
    with pytest.raises(ApprovalNeeded) as needed:
        _edit(letter)
    with transaction.atomic():
        removal.remove_content([letter.pk], AuditAct.ERASED, by="eve", reason="article 17")
    with pytest.raises(ApprovalRefused, match="nothing was requested, because"):
        request.request(needed.value, by="ann", reason="a typo", lasts=timedelta(days=1))
    assert not Approval.objects.exists()


def test_an_edit_within_the_limit_is_done_alone() -> None:
    (letter,) = limited(1)
    assert _edit(letter) == Edited(1)


def test_rules_in_force_need_two_people_and_drafts_do_not() -> None:
    (letter,) = limited(100)
    _rule(enabled=False, dlq=letter.dlq)
    rule = Rule.objects.get()
    row = asked(lambda: rule_changes.set_enabled(rule.pk, enabled=True, **ANN))
    assert approved(row) == Done("The rule hold is enabled.")
    row = asked(lambda: _rule(position=7, dlq=letter.dlq))
    assert approved(row) == Done("The rule hold is saved.")
    rule.refresh_from_db()
    assert (rule.position, rule.enabled) == (7, True)
    row = asked(lambda: rule_changes.remove(rule.pk, **ANN))
    assert approved(row) == Done("The rule hold is removed.")
    assert not Rule.objects.exists()
    assert set(AuditEntry.objects.filter(act__in=["changed"]).values_list("by", flat=True)) == {"ann, approved by bob"}


def test_a_rule_for_all_dlqs_needs_two_people_if_any_dlq_does() -> None:
    limited(100)
    row = asked(_rule)
    assert (row.dlq_ids, row.messages) == ([], None)
    rule_changes.save_rule("draft", {"action": "hold", "conditions": [], "enabled": False}, **ANN)
    assert "Somebody changed the rules after" in str(approved(row))
    assert not Rule.objects.filter(name="hold").exists()


def test_the_limit_itself_is_lifted_by_two_people_and_lowered_by_one() -> None:
    assert default_limit.set_default(10, **ANN)
    assert default_limit.set_default(5, **ANN)
    row = asked(lambda: default_limit.set_default(None, **ANN))
    assert ApprovalDefault.objects.get().above == 5
    assert approved(row) == Done("The settings are changed.")
    assert not ApprovalDefault.objects.exists()
    assert DeadLetterQueue.objects.count() == 0


@pytest.mark.parametrize("wanted", [{"approval_above": None}, {"approval_above": 9}, {"mode": "automatic"}])
def test_a_dlq_s_limit_and_its_mode_are_lifted_by_two_people(wanted: dict[str, Any]) -> None:
    (letter,) = limited(5)
    tighter = DlqProposal(name=letter.dlq.name, dlq={"approval_above": 1})
    assert registration.register(tighter, **ANN).differences
    row = asked(lambda: registration.register(DlqProposal(name=letter.dlq.name, dlq=wanted), **ANN))
    assert approved(row) == Done("The settings are changed.")
    (name,) = wanted
    assert getattr(DeadLetterQueue.objects.get(), name) == wanted[name]
    assert AuditEntry.objects.filter(act="changed").latest("pk").by == "ann, approved by bob"


def test_aws_s_own_redrive_is_refused_because_nobody_sees_its_messages_first() -> None:
    (letter,) = limited(100)
    with pytest.raises(ApprovalRefused, match="its messages cannot be shown first"):
        native_redrive.start(letter.dlq, to="", per_second=None, **ANN)


def test_restoring_and_releasing_need_two_people_too() -> None:
    letters = limited(letters=2)
    row = asked(lambda: act_on_parked.release(_ids(letters[:1]), **ANN))
    assert approved(row) == Done("1 message released.")
    Letter.objects.filter(pk=letters[1].pk).update(state="discarded", reason="")
    row = asked(lambda: act_on_parked.restore(_ids(letters[1:]), **ANN))
    assert approved(row) == Done("1 message restored.")
    assert states(letters) == {"waiting", "parked"}
