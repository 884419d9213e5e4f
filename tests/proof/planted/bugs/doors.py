"""What people ask for: runs, dry runs, decisions and their record; rules."""

from __future__ import annotations

from typing import Final

from tests.proof.planted.bug import Bug

_DRAIN: Final = "reprocessing/pipeline/runs/drain.py"
_PARK: Final = "reprocessing/pipeline/parking_lot/act_on_parked.py"
_OF_PARK: Final = "tests/reprocessing/pipeline/parking_lot/test_act_on_parked.py"
_OF_DRAIN: Final = "tests/reprocessing/pipeline/runs/test_drain.py"
_OF_COMMAND: Final = "tests/reprocessing/commands/runs/test_drain_dlq.py"
_OF_SWITCH: Final = "tests/reprocessing/pipeline/safety/test_switched_off_meanwhile.py"
_OF_THE_SERVER: Final = "tests/redrive_service/test_server.py"
_GIVES_UP: Final = (
    "tests/reprocessing/admin/dlqs/test_dlq_form.py::test_give_up_after_has_a_default_and_can_be_set_or_emptied"
)

BUGS: Final = (
    Bug(
        name="any-selection-under-a-run-s-id",
        breaks="Run ids are idempotent: another selection under the same id is not refused.",
        file=_DRAIN,
        old="    if run.dlq_id != dlq.pk or not same:\n",
        new="    if run.dlq_id != dlq.pk:\n",
        caught_by=f"{_OF_DRAIN}::test_another_selection_under_the_same_id_is_refused",
    ),
    Bug(
        name="a-run-s-id-at-any-dlq",
        breaks="Run ids are idempotent: another dlq's run of the same id is gone on with.",
        file=_DRAIN,
        old="    if run.dlq_id != dlq.pk or not same:\n",
        new="    if not same:\n",
        caught_by=f"{_OF_DRAIN}::test_another_selection_under_the_same_id_is_refused",
    ),
    Bug(
        name="a-plan-is-selected-again",
        breaks="Run ids are idempotent: planning again takes letters that came later.",
        file="reprocessing/store/runs/plans.py",
        old=" WHERE id = %(run)b AND state = 'planned' AND selected IS NULL FOR NO KEY UPDATE\n",
        new=" WHERE id = %(run)b AND state = 'planned' FOR NO KEY UPDATE\n",
        caught_by="tests/reprocessing/store/runs/test_run_transitions.py::test_planning_again_changes_nothing",
    ),
    Bug(
        name="a-dry-run-that-acts",
        breaks="Nothing acts by surprise: drain_dlq sends without --confirm.",
        file="reprocessing/management/commands/drain_dlq.py",
        old='        if options["confirm"] and not refused and not interruption():\n',
        new="        if not refused and not interruption():\n",
        caught_by=f"{_OF_COMMAND}::test_a_dry_run_captures_and_plans_and_sends_nothing",
    ),
    Bug(
        name="a-dry-run-that-deletes",
        breaks="Nothing acts by surprise: a dry run deletes from the dlq what it has captured.",
        file=_DRAIN,
        old=("    plan.place_captured(dlq)\n    return captured\n"),
        new=(
            "    plan.place_captured(dlq)\n"
            "    from reprocessing.models import DlqCopy\n"
            "    from reprocessing.store.replay.settlement import Deletable\n"
            "    from reprocessing.pipeline.capture import delete_copies\n"
            "\n"
            '    copies = DlqCopy.objects.filter(dlq=dlq, state="held")\n'
            "    held = [Deletable(dlq.pk, copy.message_id, copy.handle) for copy in copies]\n"
            "    delete_copies.delete_from_dlq(dlq, held)\n"
            "    return captured\n"
        ),
        caught_by=f"{_OF_DRAIN}::test_collecting_sends_parks_and_discards_nothing",
    ),
    Bug(
        name="a-look-that-keeps-what-it-saw",
        breaks="Nothing acts by surprise: peek_dlq does not give back what it received.",
        file="reprocessing/pipeline/capture/peek.py",
        old="        back = release(address, {message.message_id: message.handle for message in found.values()})\n",
        new="        back = release(address, {})\n",
        caught_by="tests/reprocessing/commands/dlqs/test_peek_dlq.py::test_what_is_looked_at_is_visible_again",
    ),
    Bug(
        name="a-deed-without-its-record",
        breaks="What people do is attributed: a released letter says nothing of who released it, and why.",
        file=_PARK,
        old="decisions.record_decisions(able, act, was=was, by=by, reason=reason, operation=operation)\n",
        new="decisions.record_decisions([], act, was=was, by=by, reason=reason, operation=operation)\n",
        caught_by="tests/reprocessing/pipeline/parking_lot/test_act_on_parked.py::test_who_decided_and_why_is_recorded_with_the_deed",
    ),
    Bug(
        name="a-deed-in-another-transaction",
        breaks="What people do is attributed in the same transaction: what could not be recorded is done.",
        file=_PARK,
        old="    return rows.in_transaction(decide)\n",
        new="    return decide()\n",
        caught_by="tests/reprocessing/pipeline/parking_lot/test_act_on_parked.py::test_what_cannot_be_recorded_is_not_done",
    ),
    Bug(
        name="a-decision-of-nobody",
        breaks="What people do is attributed: a deed needs no name and no reason.",
        file=_PARK,
        old="    if not by.strip() or not reason.strip():\n",
        new="    if not by and not reason:\n",
        caught_by="tests/reprocessing/pipeline/parking_lot/test_act_on_parked.py::test_nobody_decides_without_a_name_and_a_reason",
    ),
    Bug(
        name="a-dlq-that-was-switched-off-is-fed",
        breaks="Nothing acts by surprise: a capture that began while its dlq was automatic has its letters go.",
        file="reprocessing/pipeline/runs/plan.py",
        old="        if run.kind == RunKind.STANDING and not enlistment_batches.takes_letters(run.pk):\n",
        new="        if run.kind == RunKind.STANDING and not run.pk:\n",
        caught_by=f"{_OF_SWITCH}::test_a_dlq_that_becomes_manual_before_the_enlistment_enlists_nothing",
    ),
    Bug(
        name="what-ended-runs-left-goes-though-it-was-switched-off",
        breaks="Nothing acts by surprise: the standing run of a dlq that was made manual adopts letters.",
        file="reprocessing/store/runs/leftover_lanes.py",
        old=" AND r.kind = 'standing' AND d.mode = 'automatic')",
        new=" AND r.kind = 'standing')",
        caught_by=f"{_OF_SWITCH}::test_a_dlq_that_becomes_manual_stops_the_adoption_of_lanes",
    ),
    Bug(
        name="a-stop-without-its-record",
        breaks="What people do is attributed: a stop leaves no review.",
        file="reprocessing/store/safety/stops.py",
        old="jsonb_build_object('stopped', true) || {{after}}\n      FROM stopped\n",
        new="jsonb_build_object('stopped', true) || {{after}}\n      FROM stopped WHERE false\n",
        caught_by=(
            "tests/reprocessing/commands/runs/test_stopping.py::test_of_many_at_once_one_stops_and_the_others_hear_of_it"
        ),
    ),
    Bug(
        name="what-was-read-long-ago-is-told",
        breaks="The parking queue's last word is true: a sweep that froze says again what others have taken back.",
        file="reprocessing/pipeline/maintenance/recover.py",
        old="may_start=lambda: clock() < until)",
        new="may_start=lambda: until > 0)",
        caught_by=(
            "tests/reprocessing/pipeline/parking_lot/test_parking_queue.py"
            "::test_what_a_sweep_read_before_it_froze_is_not_told_after_what_came_later"
        ),
    ),
    Bug(
        name="discarded-twins-go",
        breaks="What a person discarded stays discarded: a twin of it is sent.",
        file="reprocessing/pipeline/replay/gate.py",
        old="            return _copy_of_twin(standing) if standing.released else Park(ParkedReason.TWIN_DISCARDED)\n",
        new="            return Park(ParkedReason.TWIN_DISCARDED) if standing.released else None\n",
        caught_by="tests/reprocessing/pipeline/replay/test_gate.py::test_a_twin_of_a_discarded_letter_is_parked",
    ),
    Bug(
        name="conflicts-are-duplicates",
        breaks="No loss: another body under a key that was used is closed as a duplicate.",
        file="reprocessing/pipeline/replay/gate.py",
        old="        case ClaimState.DELIVERED if standing.claim_same_body:\n",
        new="        case ClaimState.DELIVERED:\n",
        caught_by=(
            "tests/reprocessing/pipeline/replay/test_gate.py::test_an_equal_key_with_another_body_is_a_conflict"
        ),
    ),
    Bug(
        name="an-older-book-is-written",
        breaks="Rules are compared before they are written: what an older book says is believed.",
        file="reprocessing/store/routing/routing_decisions.py",
        old=(
            "       AND coalesce((SELECT version FROM redrive_rulebook WHERE id = 1), 0) = %(version)b\n"
            "     ORDER BY l.id FOR UPDATE OF l\n"
        ),
        new="       AND %(version)b IS NOT NULL\n     ORDER BY l.id FOR UPDATE OF l\n",
        caught_by="tests/reprocessing/pipeline/routing/test_route.py::test_decisions_of_an_old_book_are_not_written",
    ),
    Bug(
        name="a-rule-that-is-lifted-keeps-what-waits-for-an-unwell-target",
        breaks="What a rule sent to a target that stays unwell waits for it for ever, though the rule is lifted.",
        file="reprocessing/store/routing/routing_decisions.py",
        old=" OR target_id IN ({UNWELL})",
        new="",
        caught_by=(
            "tests/reprocessing/pipeline/routing/test_route.py::test_a_letter_diverted_to_an_unhealthy_target_returns"
        ),
    ),
    Bug(
        name="a-rule-that-errs-lets-go",
        breaks="A rule that cannot be asked holds the letter: what it would have quarantined is sent.",
        file="reprocessing/store/ordering/lanes.py",
        old="coalesce(h.route IN ('hold', 'erred') AND",
        new="coalesce(h.route IN ('hold') AND",
        caught_by=("tests/reprocessing/pipeline/routing/test_route.py::test_a_rule_that_fails_holds_only_that_letter"),
    ),
    Bug(
        name="rows-in-error-messages",
        breaks="Payloads are never shown: an error of the database quotes the row that did it.",
        file="reprocessing/store/rows.py",
        old="        if error.diag.message_detail is None:\n",
        new="        if error.diag is not None:\n",
        caught_by="tests/reprocessing/store/test_rows.py::test_an_error_names_the_constraint_and_shows_no_row",
    ),
    Bug(
        name="a-deadlock-s-victim-gives-up",
        breaks="Two who wait for each other are soon apart: one of them fails.",
        file="reprocessing/store/rows.py",
        old="DEADLOCK_RETRIES = 8\n",
        new="DEADLOCK_RETRIES = 0\n",
        caught_by="tests/race/test_deadlocks.py::test_a_deadlock_s_victim_is_run_again_as_a_whole",
    ),
    Bug(
        name="a-discard-takes-its-twin-s-key",
        breaks="One letter of a key: who discards a letter takes the key of its twin that is under way.",
        file="reprocessing/store/parking_lot/decisions.py",
        old=" OR (c.state = 'held' AND c.letter_id = excluded.letter_id)\n)\nSELECT",
        new=" OR c.state = 'held'\n)\nSELECT",
        caught_by=f"{_OF_PARK}::test_a_discarded_letter_leaves_the_key_to_its_twin_that_is_under_way",
    ),
    Bug(
        name="a-restore-frees-what-was-delivered",
        breaks="One letter of a key: who restores a discarded letter frees a key that says that it was delivered.",
        file="reprocessing/store/parking_lot/restore_discarded.py",
        old=" AND c.letter_id = m.id\n       AND c.state = 'discarded'\n",
        new=" AND c.letter_id = m.id\n",
        caught_by=f"{_OF_PARK}::test_a_restored_letter_leaves_a_key_that_says_something_else_than_its_discard",
    ),
    Bug(
        name="earlier-tools-have-had-the-delay",
        breaks="A rule acts as it says: what an earlier tool tried is not delayed by a rule that begins to delay.",
        file="reprocessing/store/routing/routing_decisions.py",
        old="l.attempts + l.not_sent > l.earlier, false) AS had",
        new="l.attempts + l.not_sent > 0, false) AS had",
        caught_by="tests/reprocessing/pipeline/routing/test_route.py"
        "::test_a_letter_that_only_earlier_tools_tried_is_delayed",
    ),
    Bug(
        name="a-target-cannot-be-tried-for-ever",
        breaks="A person decides: emptied in the admin, the time after which a run gives up stays what it was.",
        file="reprocessing/admin/dlqs/dlq_form.py",
        old='{"give_up_after", "new_key_delay",',
        new='{"new_key_delay",',
        caught_by=_GIVES_UP,
    ),
    Bug(
        name="the-admin-forgets-when-a-target-is-given-up",
        breaks="A person decides: the admin takes the time after which a run gives up, and does not write it.",
        file="reprocessing/admin/dlqs/dlq_form.py",
        old='"waves", "wave_success", "give_up_after", "role_arn", "held_copies_limit",',
        new='"waves", "wave_success", "role_arn", "held_copies_limit",',
        caught_by=_GIVES_UP,
    ),
    Bug(
        name="what-the-kernel-has-queued-is-reset",
        breaks="A request that was begun is answered: one whose connection was not accepted yet is cut.",
        file="redrive_service/server.py",
        old="        self._listener.accept_queued()\n",
        new="",
        caught_by=f"{_OF_THE_SERVER}::test_a_request_that_waits_in_the_kernel_s_queue_is_answered_before_the_server_ends",
    ),
    Bug(
        name="half-a-request-is-cut-by-a-stop",
        breaks="A request that was begun is answered: one that is still arriving when the server ends is cut.",
        file="redrive_service/server.py",
        old=" or (may_arrive and channel.is_expected())]",
        new="]",
        caught_by=f"{_OF_THE_SERVER}::test_a_request_that_arrives_while_the_server_ends_is_answered",
    ),
    Bug(
        name="half-a-request-holds-up-a-stop",
        breaks="The service stops when it is told to: a client that sends half a request keeps it for half a minute.",
        file="redrive_service/server.py",
        old=" or (may_arrive and channel.is_expected())]",
        new=" or channel.is_expected()]",
        caught_by=f"{_OF_THE_SERVER}::test_a_request_that_does_not_become_whole_holds_up_no_end",
    ),
)
