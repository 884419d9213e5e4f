"""Whose a lane is, and whose a dlq: leases and fences."""

from __future__ import annotations

from typing import Final

from tests.proof.planted.bug import Bug

_LANES: Final = "reprocessing/store/ordering/lanes.py"
_CAPTURES: Final = "reprocessing/store/capture/capture_lease.py"
_WITHOUT_ITS_FENCE: Final = (
    "tests/race/test_lanes.py::test_an_owner_without_its_fence_intends_renews_and_hands_back_nothing"
)

BUGS: Final = (
    Bug(
        name="lock-without-fence",
        breaks="No stale owner's write lands: whoever lost a lane still finds it to be its own.",
        file=_LANES,
        old=" WHERE m.fence IS NULL OR (n.fence = m.fence AND n.phase = 'leased')",
        new=" WHERE m.fence IS NULL OR n.phase = 'leased'",
        caught_by=_WITHOUT_ITS_FENCE,
    ),
    Bug(
        name="next-without-fence",
        breaks="No stale owner's write lands: it moves the lane of whoever leased it since.",
        file=_LANES,
        old="ELSE n.fence = head.my_fence AND n.phase = 'leased' END",
        new="ELSE n.phase = 'leased' END",
        caught_by=_WITHOUT_ITS_FENCE,
    ),
    Bug(
        name="renewal-without-fence",
        breaks="No stale owner's write lands: it lengthens another's lease, and believes it is its own.",
        file=_LANES,
        old=" WHERE n.id = m.lane_id AND n.fence = m.fence AND n.phase = 'leased'\nRETURNING n.id AS lane_id",
        new=" WHERE n.id = m.lane_id AND n.phase = 'leased'\nRETURNING n.id AS lane_id",
        caught_by=_WITHOUT_ITS_FENCE,
    ),
    Bug(
        name="handed-back-without-fence",
        breaks="One at a time: a stale owner gives away a lane that another works on.",
        file=_LANES,
        old="breaker_id)\n WHERE n.id = m.lane_id AND n.fence = m.fence AND n.phase = 'leased'",
        new="breaker_id)\n WHERE n.id = m.lane_id AND n.phase = 'leased'",
        caught_by=_WITHOUT_ITS_FENCE,
    ),
    Bug(
        name="intent-without-fence",
        breaks="One at a time: a stale owner sends a letter of a lane that another has leased.",
        file="reprocessing/store/replay/intent.py",
        old="     WHERE n.fence = a.fence AND n.phase || '' = 'leased'\n",
        new="     WHERE n.phase || '' = 'leased'\n",
        caught_by=_WITHOUT_ITS_FENCE,
    ),
    Bug(
        name="intent-on-a-lease-that-ends",
        breaks="One at a time: a request begins so late that it is still open when the lane is another's.",
        file="reprocessing/store/replay/intent.py",
        old="       AND n.due_at > redrive_now() + make_interval(secs => %(margin)b::float8)\n",
        new="",
        caught_by="tests/race/test_lanes.py::test_an_intent_needs_enough_of_its_lease",
    ),
    Bug(
        name="settled-without-fence",
        breaks="No stale owner's write lands: its outcome moves a letter that another has leased.",
        file="reprocessing/pipeline/replay/settle.py",
        old="        ours = [attempt for attempt in ordered if attempt.lane_id in mine]\n",
        new="        ours = list(ordered)\n",
        caught_by=(
            "tests/reprocessing/pipeline/replay/test_replay_slice.py::test_a_worker_that_lost_its_lane_moves_no_letter"
        ),
    ),
    Bug(
        name="heads-closed-without-fence",
        breaks="No stale owner's write lands: it parks or skips a head that another has leased.",
        file="reprocessing/pipeline/replay/settle.py",
        old="ours = {lane: closing for lane, closing in closings.items() if lane[0] in mine}",
        new="ours = dict(closings)",
        caught_by="tests/race/test_lanes.py::test_an_owner_without_its_fence_closes_no_head",
    ),
    Bug(
        name="others-move-a-leased-lane",
        breaks="Only its owner moves a leased lane: a return or a release makes it due beside its owner.",
        file=_LANES,
        old="CASE WHEN head.my_fence IS NULL THEN n.phase <> 'leased'",
        new="CASE WHEN head.my_fence IS NULL THEN true",
        caught_by="tests/race/test_lanes.py::test_only_the_owner_moves_a_leased_lane",
    ),
    Bug(
        name="leases-that-do-not-last",
        breaks="One at a time: a lane is taken from an owner that is alive.",
        file=_LANES,
        old="false)\n           AND due_at <= (SELECT redrive_now()) AND {{wanted}}",
        new="false)\n           AND {{wanted}}",
        caught_by="tests/race/test_lanes.py::test_a_lane_belongs_to_its_owner_until_the_lease_ends",
    ),
    Bug(
        name="hinted-leases-that-do-not-last",
        breaks="One at a time: whoever was told of a lane takes it from an owner that is alive.",
        file=_LANES,
        old=" WHERE id = ANY(%(only)b::bigint[]) AND run_id IN ({KNOWN_RUNS}) AND due_at <= redrive_now()\n",
        new=" WHERE id = ANY(%(only)b::bigint[]) AND run_id IN ({KNOWN_RUNS}) AND due_at IS NOT NULL\n",
        caught_by="tests/race/test_lanes.py::test_a_lane_belongs_to_its_owner_until_the_lease_ends",
    ),
    Bug(
        name="leases-wait-for-each-other",
        breaks="A blocked lane blocks nobody else: who leases waits until another has leased.",
        file=_LANES,
        old="ORDER BY breaker_id, due_at LIMIT %(limit)b FOR UPDATE SKIP LOCKED) d\n",
        new="ORDER BY breaker_id, due_at LIMIT %(limit)b FOR UPDATE) d\n",
        caught_by="tests/race/test_lanes.py::test_a_second_worker_waits_for_nobody",
    ),
    Bug(
        name="a-dead-owner-s-attempt-stays-open",
        breaks="Crash anywhere, recover alone: the attempt of a killed worker holds its lane for ever.",
        file="reprocessing/pipeline/replay/lease_lanes.py",
        old="    if inherited := [lane for lane in leased if lane.inherited]:\n",
        new="    if inherited := []:\n",
        caught_by=(
            "tests/reprocessing/pipeline/replay/test_replay_slice.py::test_a_repeated_letter_has_the_same_identity"
        ),
    ),
    Bug(
        name="a-lost-lane-renews-the-others",
        breaks="No send starts after its deadline: when one lane is lost, requests for it go on being started.",
        file="reprocessing/pipeline/replay/lease_keeper.py",
        old="            if len(mine) == len(self._lanes):\n",
        new="            if mine is not None:\n",
        caught_by=(
            "tests/reprocessing/pipeline/replay/test_lease_keeper.py"
            "::test_after_a_lost_lane_the_first_lease_is_the_limit"
        ),
    ),
    Bug(
        name="two-capture-a-dlq",
        breaks="One capture at a time: a second one takes a dlq whose lease lasts.",
        file=_CAPTURES,
        old="WHERE id = %(dlq)b AND mode <> 'observe' AND coalesce(leased_until <= redrive_now(), true)",
        new="WHERE id = %(dlq)b AND mode <> 'observe'",
        caught_by="tests/race/test_captures.py::test_of_simultaneous_captures_one_leases_the_dlq",
    ),
    Bug(
        name="a-capture-goes-on-without-its-dlq",
        breaks="No stale owner's write lands: a capture writes into a dlq that is another's by now.",
        file=_CAPTURES,
        old=(
            "orphans_hidden_until = greatest(orphans_hidden_until, redrive_now() + make_interval(secs => "
            "%(dirty)b::float8))\n"
            " WHERE id = %(dlq)b AND fence = %(fence)b"
        ),
        new=(
            "orphans_hidden_until = greatest(orphans_hidden_until, redrive_now() + make_interval(secs => "
            "%(dirty)b::float8))\n"
            " WHERE id = %(dlq)b"
        ),
        caught_by="tests/reprocessing/pipeline/capture/test_capture.py::test_a_capture_that_lost_its_lease_writes_nothing",
    ),
    Bug(
        name="a-capture-ends-another-s",
        breaks="Evidence: a capture that lost its dlq says that it was drained.",
        file=_CAPTURES,
        old="ELSE drained_through END\n WHERE id = %(dlq)b AND fence = %(fence)b",
        new="ELSE drained_through END\n WHERE id = %(dlq)b",
        caught_by=(
            "tests/race/test_a_capture_loses_its_dlq.py"
            "::test_a_capture_that_lost_its_dlq_during_silence_has_drained_nothing"
        ),
    ),
    Bug(
        name="a-lease-counts-from-the-wire",
        breaks="One at a time: a worker that froze after its intent sends when its lease is over.",
        file="reprocessing/pipeline/replay/lease_keeper.py",
        old="        self.until = began + min([lease, *(attempt.lease_left for attempt in intended)]) - SEND_MARGIN\n",
        new="        self.until = time.monotonic() + lease - SEND_MARGIN\n",
        caught_by=(
            "tests/reprocessing/pipeline/replay/test_lease_keeper.py"
            "::test_a_turn_that_froze_after_its_intent_sends_nothing"
        ),
    ),
    Bug(
        name="a-turn-that-is-given-counts-as-had",
        breaks="Crash anywhere, recover alone: a dlq whose look is lost waits until its schedule's next time.",
        file="reprocessing/store/dlqs/schedule.py",
        old="                then = min(then, now + RETRY_AFTER)\n",
        new="",
        caught_by=(
            "tests/reprocessing/test_tasks.py::test_a_turn_that_could_not_be_handed_over_is_given_again_a_minute_later"
        ),
    ),
    Bug(
        name="a-list-ends-what-was-claimed-since",
        breaks="One at a time: a list of before the claim ends a redrive that AWS is at, and captures run beside it.",
        file="reprocessing/pipeline/aws/native_redrive.py",
        old="    active = next((move for move in listed if move.is_active), None)\n    if own is None:\n",
        new=(
            "    active, own = next((move for move in listed if move.is_active), None), aws_redrives.current(dlq.pk)\n"
            "    if own is None:\n"
        ),
        caught_by="tests/race/test_native_redrive.py::test_an_answer_that_is_older_than_the_claim_ends_nothing",
    ),
)
