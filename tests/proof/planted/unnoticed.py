"""Guards that were taken out and that no test missed: another one stands behind each, and holds the promise alone.

Whoever takes away what is behind them has to see to a test here. `caught_by` names the test that comes nearest.
"""

from __future__ import annotations

from typing import Final

from tests.proof.planted.bug import Bug

UNNOTICED: Final = (
    Bug(
        name="heads-skip-what-awaits",
        breaks="Nothing: the lane awaits while an attempt holds it, whatever its head is.",
        file="reprocessing/store/ordering/lanes.py",
        old="WHERE l.lane_id = m.lane_id AND l.state IN ('waiting', 'sending', 'awaiting') AND NOT l.frees_lane",
        new="WHERE l.lane_id = m.lane_id AND l.state = 'waiting' AND NOT l.frees_lane",
        caught_by="tests/reprocessing/pipeline/replay/test_replay_slice.py::test_a_lane_sends_one_letter_at_a_time",
    ),
    Bug(
        name="a-letter-that-moved-on-is-settled",
        breaks="Nothing: a return closes the attempt, and of a closed attempt no letter is settled.",
        file="reprocessing/store/replay/settlement.py",
        old="     WHERE l.id = f.letter_id AND l.state = 'sending'\n",
        new="     WHERE l.id = f.letter_id\n",
        caught_by="tests/race/test_outcomes.py::test_a_letter_that_returns_before_its_send_is_settled_is_settled_once",
    ),
    Bug(
        name="whatever-is-admitted-goes",
        breaks="Nothing: of a breaker on trial one letter is admitted, and breakers on trial are locked before.",
        file="reprocessing/store/replay/intent.py",
        old=" AND (r.breaker_state = 'closed' OR k.letter_id IS NOT NULL)\n",
        new="\n",
        caught_by="tests/race/test_brakes.py::test_one_canary_is_sent_however_many_workers_try",
    ),
    Bug(
        name="a-plan-takes-its-turn-late",
        breaks="Nothing but time: the selection takes the turn itself; two plans may wait for each other once.",
        file="reprocessing/store/runs/plans.py",
        old="            selection.lock_selection(dlq)\n",
        new="            del dlq\n",
        caught_by="tests/race/test_enlistment.py::test_of_two_plans_at_once_neither_has_letters_behind_those_of_the_other",
    ),
    Bug(
        name="enlisted-without-a-lock",
        breaks="Nothing but the order of locks: putting letters onto a lane that is there locks it, too.",
        file="reprocessing/store/runs/enlistment.py",
        old="    rows.execute(_LOCK_LANES, values)\n",
        new="",
        caught_by="tests/race/test_lanes.py::test_whole_lanes_are_enlisted_behind_the_lock_of_those_that_are_there",
    ),
)
