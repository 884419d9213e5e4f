"""In order, and one at a time: heads, sequences, stale letters, whole lanes."""

from __future__ import annotations

from typing import Final

from tests.proof.planted.bug import Bug

_LANES: Final = "reprocessing/store/ordering/lanes.py"
_LAST: Final = "tests/reprocessing/pipeline/replay/test_last_attempts.py"
_PLAN: Final = "tests/reprocessing/pipeline/runs/test_plan.py"
_SELECTION: Final = "reprocessing/store/runs/selection.py"
_TWO_SOURCES: Final = "tests/reprocessing/store/runs/test_selection.py::test_equal_keys_of_two_sources_are_two_lanes"

BUGS: Final = (
    Bug(
        name="heads-by-arrival",
        breaks="In order: a lane's letters go as they were captured, not by their sequence.",
        file=_LANES,
        old="ORDER BY l.sequence, l.message_id LIMIT 1) h ON true",
        new="ORDER BY l.captured_at, l.id LIMIT 1) h ON true",
        caught_by=f"{_PLAN}::test_what_arrived_in_the_wrong_order_goes_in_the_right_one",
    ),
    Bug(
        name="an-earlier-letter-waits-for-the-later-one",
        breaks="In order: an earlier letter that comes onto a lane in use waits for the later one, and for its run.",
        file="reprocessing/store/runs/enlistment.py",
        old="    new_heads.move_to_new_heads(found.ahead)\n",
        new="",
        caught_by=(
            "tests/reprocessing/pipeline/replay/test_precedence.py"
            "::test_an_earlier_letter_does_not_wait_for_a_paused_run_of_a_later_one"
        ),
    ),
    Bug(
        name="next-is-asked-before-the-lock",
        breaks="Recover alone: a letter given to a lane while its owner asks what comes next there sleeps for ever.",
        file="reprocessing/pipeline/replay/lease_lanes.py",
        old="        lanes.lock(ids, fences)\n        return lanes.advance(ids, fences, keep=True",
        new="        return lanes.advance(ids, fences, keep=True",
        caught_by="tests/race/test_a_wake_up.py::test_a_letter_released_while_its_lane_s_head_is_gone_goes",
    ),
    Bug(
        name="a-plan-that-died-keeps-its-lanes",
        breaks="Recover alone: a plan that was killed after it adopted keeps letters for a day, and those behind them.",
        file="reprocessing/store/runs/enlistment.py",
        old="(SELECT h.state FROM redrive_run h WHERE h.id = %(run)b) = 'running'",
        new="false",
        caught_by=(
            "tests/reprocessing/store/runs/test_run_transitions.py"
            "::test_the_next_run_adopts_what_a_plan_adopted_whose_start_crashed"
        ),
    ),
    Bug(
        name="what-is-being-captured-goes",
        breaks="In order: a turn at a dlq enlists a later letter, while another capture has the earlier one in hand.",
        file="reprocessing/pipeline/runs/feed_run.py",
        old="        return plan.enlist(dlq, run, through=through, ",
        new="        del through\n        return plan.enlist(dlq, run, ",
        caught_by=(
            "tests/race/test_captures.py::test_letters_of_an_unfinished_capture_are_enlisted_when_it_has_run_dry"
        ),
    ),
    Bug(
        name="lanes-wait-for-no-outcome",
        breaks="One at a time: a letter goes while the outcome of the one before it is open.",
        file=_LANES,
        old=(
            "           h.state = 'awaiting' OR (\n"
            "                SELECT a.deadline FROM redrive_attempt a\n"
            "                 WHERE a.lane_id = m.lane_id AND a.holds_lane) IS NOT NULL AS awaits\n"
        ),
        new="           false AS awaits\n",
        caught_by="tests/reprocessing/pipeline/replay/test_replay_slice.py::test_a_lane_sends_one_letter_at_a_time",
    ),
    Bug(
        name="a-head-that-comes-again-waits-for-nobody",
        breaks="One at a time: a released letter goes while a later one of its lane is with the target.",
        file=_LANES,
        old="                 WHERE a.lane_id = m.lane_id AND a.holds_lane) IS NOT NULL AS awaits",
        new="                 WHERE false) IS NOT NULL AS awaits",
        caught_by=("tests/race/test_heads.py::test_a_letter_released_before_one_that_was_sent_waits_for_its_outcome"),
    ),
    Bug(
        name="a-last-attempt-of-unknown-end-holds-nothing",
        breaks="One at a time: the last reply of a letter is lost, and the next one goes while it is on its way.",
        file="reprocessing/models/target.py",
        old="        return self.proof != Proof.ACCEPTED and self.advance == Advance.SETTLED\n",
        new="        return False\n",
        caught_by=f"{_LAST}::test_the_next_letter_waits_while_the_copy_may_come_back",
    ),
    Bug(
        name="a-dead-worker-s-last-attempt-holds-nothing",
        breaks="One at a time: a worker dies over a last attempt, and the next letter goes while it is on its way.",
        file="reprocessing/store/ordering/orphaned_lanes.py",
        old=">= d.max_attempts AND {OUTLASTS} AS lasts",
        new=">= d.max_attempts AND false AS lasts",
        caught_by=f"{_LAST}::test_the_next_letter_waits_while_the_copy_may_come_back",
    ),
    Bug(
        name="a-lane-waits-for-ever-for-a-last-attempt",
        breaks="Crash anywhere, recover alone: a lane whose letter's last end nobody knows never goes on.",
        file="reprocessing/pipeline/outcomes/resolve_outcomes.py",
        old=(
            "        *evidence.outlasted_attempts(count_lag=lag, limit=_GROUP),\n"
            "        *acknowledgements.outlasted_unwatched_attempts(limit=_GROUP),\n"
        ),
        new="        *acknowledgements.outlasted_unwatched_attempts(limit=0),\n",
        caught_by=f"{_LAST}::test_the_next_letter_waits_while_the_copy_may_come_back",
    ),
    Bug(
        name="a-discard-leaves-the-key-of-what-is-on-its-way",
        breaks="A letter is discarded while its last attempt may be out, and its twin is sent.",
        file="reprocessing/store/parking_lot/decisions.py",
        old="     WHERE c.state = 'free' OR (c.state = 'held' AND c.letter_id = excluded.letter_id)\n",
        new="     WHERE c.state = 'free'\n",
        caught_by=f"{_LAST}::test_a_discard_keeps_its_key_while_a_copy_may_come_back",
    ),
    Bug(
        name="a-key-that-is-left-behind-stays-held",
        breaks="A letter gets another key, its last attempt comes back, and its twin waits for a copy that is nowhere.",
        file="reprocessing/store/replay/settlement_effects.py",
        old="     WHERE c.letter_id = x.letter_id AND c.state = 'held'\n",
        new="     WHERE false AND c.letter_id = x.letter_id AND c.state = 'held'\n",
        caught_by=f"{_LAST}::test_a_twin_goes_when_the_copy_of_a_changed_letter_is_back",
    ),
    Bug(
        name="a-restore-frees-the-key-of-what-is-on-its-way",
        breaks="A discard is taken back while the last attempt may be out, and the twin is sent beside it.",
        file="reprocessing/store/parking_lot/restore_discarded.py",
        old="CASE WHEN m.until IS NULL THEN 'free' ELSE 'held' END",
        new="'free'",
        caught_by=f"{_LAST}::test_a_restored_letter_keeps_its_key_while_a_copy_may_come_back",
    ),
    Bug(
        name="intent-beside-an-attempt-that-holds-the-lane",
        breaks="One at a time: two workers of one lease open two attempts, and the schema alone stands between them.",
        file="reprocessing/store/replay/intent.py",
        old="       AND (SELECT a.id FROM redrive_attempt a WHERE a.lane_id = m.lane_id AND a.holds_lane) IS NULL\n",
        new="",
        caught_by=(
            "tests/reprocessing/pipeline/replay/test_replay_slice.py"
            "::test_no_letter_is_intended_while_an_attempt_of_a_former_head_holds_the_lane"
        ),
    ),
    Bug(
        name="a-head-that-is-one-no-longer-goes",
        breaks="In order: a letter waits for its target's rate, an earlier one comes back, and is passed all the same.",
        file="reprocessing/store/replay/intent.py",
        old="       AND l.id = (SELECT h.id FROM redrive_letter h\n",
        new="       AND l.id >= (SELECT h.id FROM redrive_letter h\n",
        caught_by="tests/race/test_heads.py::test_an_earlier_letter_that_returned_meanwhile_goes_first",
    ),
    Bug(
        name="an-intent-sees-its-lane-as-it-was",
        breaks="In order: an intent that waits for an earlier letter's return passes it when it is committed.",
        file="reprocessing/store/safety/send_limits.py",
        old="     ORDER BY n.id FOR UPDATE OF n\n)\nSELECT count(*) AS n FROM ours",
        new="     ORDER BY n.id\n)\nSELECT count(*) AS n FROM ours",
        caught_by="tests/race/test_heads.py::test_an_earlier_letter_that_returns_at_the_same_moment_goes_first",
    ),
    Bug(
        name="a-held-head-goes",
        breaks="A parked head holds its lane where the dlq says so: the next one goes all the same.",
        file=_LANES,
        old="           (d.when_parked = 'hold' AND (\n",
        new="           (false AND (\n",
        caught_by=(
            "tests/reprocessing/pipeline/replay/test_settle.py::test_a_parked_head_holds_its_lane_if_the_dlq_says_so"
        ),
    ),
    Bug(
        name="delivered-sequences-are-not-remembered",
        breaks="In order: a letter that turns up after a later one was delivered is not known as stale.",
        file=_LANES,
        old="SET highest_sent_sequence = greatest(n.highest_sent_sequence, head.passed), run_id = head.run_id",
        new="SET highest_sent_sequence = n.highest_sent_sequence, run_id = head.run_id",
        caught_by=f"{_PLAN}::test_a_stale_letter_is_parked_and_a_person_s_release_sends_it_once",
    ),
    Bug(
        name="sequences-of-unknown-fate-are-not-remembered",
        breaks="In order: what a killed worker perhaps sent makes no earlier letter stale.",
        file="reprocessing/store/ordering/orphaned_lanes.py",
        old="SET highest_sent_sequence = greatest(n.highest_sent_sequence, f.sequence)",
        new="SET highest_sent_sequence = n.highest_sent_sequence",
        caught_by=f"{_PLAN}::test_what_perhaps_went_out_makes_an_earlier_letter_stale",
    ),
    Bug(
        name="stale-letters-go",
        breaks="In order: a stale letter is sent without a policy or a person saying so.",
        file="reprocessing/pipeline/replay/gate.py",
        old="    if standing.stale and standing.never_sent and not standing.released and standing.stale_policy == ",
        new="    if standing.stale is None and standing.stale_policy == ",
        caught_by=f"{_PLAN}::test_a_stale_letter_is_parked_and_a_person_s_release_sends_it_once",
    ),
    Bug(
        name="enlisted-in-parts",
        breaks="In order: lanes exist for a moment without their earlier letters, and later ones go.",
        file="reprocessing/pipeline/runs/plan.py",
        old=("        return enlistment.enlist_letters(dlq.pk, run.pk)\n\n    return rows.in_transaction(work)"),
        new=("        return enlistment.enlist_letters(dlq.pk, run.pk)\n\n    return work()"),
        caught_by=f"{_PLAN}::test_enlisting_is_all_or_nothing",
    ),
    Bug(
        name="enlisted-beside-whoever-moves-the-lanes",
        breaks="Whoever locks lanes does so in the order of their ids: two who do not wait for each other for ever.",
        file="reprocessing/store/runs/enlistment.py",
        old="    rows.execute(_LOCK_LANES, values)\n",
        new="",
        caught_by="tests/race/test_enlistment.py::test_lanes_are_locked_in_the_order_of_their_ids_whatever_order_their_letters_failed_in",
    ),
    Bug(
        name="plans-take-no-turns",
        breaks="In order: of two plans at once one has letters behind those of the other.",
        file="reprocessing/store/runs/selection.py",
        old=("    lock_selection(dlq)\n    return rows.fetch(SelectedCount"),
        new="    return rows.fetch(SelectedCount",
        caught_by=(
            "tests/race/test_enlistment.py::test_of_two_plans_at_once_neither_has_letters_behind_those_of_the_other"
        ),
    ),
    Bug(
        name="fresh-lanes-keep-no-quiet",
        breaks="In order: a letter goes while an earlier one of its key is still retried in its queue.",
        file="reprocessing/store/runs/enlistment.py",
        old="       CASE WHEN bool_and(l.single) THEN redrive_now()\n",
        new="       CASE WHEN true THEN redrive_now()\n",
        caught_by=f"{_PLAN}::test_a_fresh_lane_of_a_key_keeps_quiet_and_a_single_one_does_not",
    ),
    Bug(
        name="enlisted-before-the-dlq-ran-dry",
        breaks="In order: lanes are enlisted while earlier letters of theirs are still in the dlq.",
        file="reprocessing/pipeline/runs/feed_run.py",
        old="        if dlq.mode == Mode.AUTOMATIC and gathered.captured.drained:\n",
        new="        if dlq.mode == Mode.AUTOMATIC:\n",
        caught_by="tests/reprocessing/pipeline/runs/test_feed_run.py::test_nothing_is_enlisted_before_the_dlq_has_run_dry",
    ),
    Bug(
        name="a-group-goes-on-behind-its-failure",
        breaks="In order: a FIFO group's next letter is sent after one that was not taken.",
        file="reprocessing/gateways/sqs/batch_requests.py",
        old="            if self._way.fifo and not isinstance(outcome, Taken):\n",
        new="            if self._way.fifo and outcome is None:\n",
        caught_by=(
            "tests/reprocessing/gateways/sqs/test_sending_kinds.py"
            "::test_after_a_failure_no_later_request_carries_the_groups_next_letter"
        ),
    ),
    Bug(
        name="letters-moved-before-their-lanes-are-locked",
        breaks="Whoever moves letters locks their lanes first: a wake-up is lost, and the lane stands for ever.",
        file="reprocessing/pipeline/replay/settle.py",
        old="mine = lanes.lock([attempt.lane_id for attempt in ordered], [attempt.fence for attempt in ordered])\n",
        new="mine = {attempt.lane_id for attempt in ordered}\n",
        caught_by="tests/race/test_lanes.py::test_lanes_are_locked_before_their_letters_are_moved",
    ),
    Bug(
        name="a-lane-passes-backwards",
        breaks="In order: a stale letter that a person released makes the next stale one go, as if it were fresh.",
        file=_LANES,
        old="SET highest_sent_sequence = greatest(n.highest_sent_sequence, head.passed), run_id = head.run_id",
        new="SET highest_sent_sequence = coalesce(head.passed, n.highest_sent_sequence), run_id = head.run_id",
        caught_by=f"{_PLAN}::test_what_is_sent_late_by_a_person_s_release_makes_no_later_letter_fresh_again",
    ),
    Bug(
        name="a-lane-passes-backwards-when-it-is-told",
        breaks="In order: likewise, when its worker died and others tell what became of it.",
        file="reprocessing/store/replay/settlement_effects.py",
        old=" AND coalesce(n.highest_sent_sequence < f.sequence, f.sequence IS NOT NULL)\n",
        new=" AND f.sequence IS NOT NULL\n",
        caught_by="tests/reprocessing/pipeline/replay/test_an_earlier_attempt_of_unknown_end.py"
        "::test_a_late_released_letter_leaves_the_order_as_it_was",
    ),
    Bug(
        name="what-earlier-tools-tried-is-never-stale",
        breaks="In order: an attempt of an earlier tool counts as ours, and its letter goes behind later ones.",
        file=_LANES,
        old="l.attempts + l.not_sent = l.earlier AS never_sent",
        new="l.attempts + l.not_sent = 0 AS never_sent",
        caught_by=f"{_PLAN}::test_a_stale_letter_that_earlier_tools_have_tried_is_parked_all_the_same",
    ),
    Bug(
        name="a-selection-waits-for-another-source-s-key",
        breaks="A key is ordered within its source queue: a letter is left out for one of another queue's.",
        file=_SELECTION,
        old="PARTITION BY source_id, lane ORDER BY sequence, message_id) AS leads,\n",
        new="PARTITION BY lane ORDER BY sequence, message_id) AS leads,\n",
        caught_by=_TWO_SOURCES,
    ),
    Bug(
        name="a-selection-dates-lanes-by-another-source-s-key",
        breaks="A limit takes the lanes whose oldest letters are oldest: one goes first for a letter of another queue.",
        file=_SELECTION,
        old="min(first_sent_at) OVER (PARTITION BY source_id, lane) AS first",
        new="min(first_sent_at) OVER (PARTITION BY lane) AS first",
        caught_by=_TWO_SOURCES,
    ),
    Bug(
        name="an-instalment-waits-for-another-source-s-key",
        breaks="A key is ordered within its source queue: an instalment leaves a letter out for another queue's.",
        file=_SELECTION,
        old="PARTITION BY source_id, lane ORDER BY sequence, message_id) AS leads\n",
        new="PARTITION BY lane ORDER BY sequence, message_id) AS leads\n",
        caught_by=_TWO_SOURCES,
    ),
)
