"""Nobody is told, or too often, or with words of a message: what announces and concludes incidents."""

from __future__ import annotations

from typing import Final

from tests.proof.planted.bug import Bug

_TOLD: Final = "tests/reprocessing/store/notifications"
_BREAKERS: Final = f"{_TOLD}/test_breaker_events.py"
_RUNS: Final = f"{_TOLD}/test_run_events.py"
_CONDITIONS: Final = "tests/reprocessing/pipeline/notifications/test_conditions.py"
_LOOK: Final = "reprocessing/pipeline/notifications/conditions.py"
_HEARTBEAT: Final = "tests/reprocessing/domain/notifications/test_heartbeat.py"

BUGS: Final = (
    Bug(
        name="a-breaker-opens-in-silence",
        breaks="A person is told: a circuit breaker opens, and nobody hears of it.",
        file="reprocessing/store/safety/circuit_breakers.py",
        old="    announce_opened([OpenedBreaker(",
        new="    list([OpenedBreaker(",
        caught_by=f"{_BREAKERS}::test_many_failures_open_one_incident",
    ),
    Bug(
        name="an-opening-is-committed-before-it-is-announced",
        breaks="An event is announced in its transaction: a breaker opens, and a dying worker announces nothing.",
        file="reprocessing/store/safety/circuit_breakers.py",
        old="rows.in_transaction(move_all) if any(move.state != move.row.state for move in wanted) else move_all()\n",
        new="move_all()\n",
        caught_by=f"{_BREAKERS}::test_an_opening_and_its_announcement_are_committed_together",
    ),
    Bug(
        name="a-closed-breaker-stays-an-incident",
        breaks="A closing text when it is over: a breaker closes, and its incident stays open.",
        file="reprocessing/store/safety/circuit_breakers.py",
        old="    conclude_closed([move.row.id for move in moved if move.state == BreakerState.CLOSED])\n",
        new="",
        caught_by=f"{_BREAKERS}::test_closing_a_breaker_ends_the_incident_and_reopening_continues_it",
    ),
    Bug(
        name="a-notification-quotes-an-answer",
        breaks="No payload in a notification: what a target answered goes out with the run that gave it up.",
        file="reprocessing/store/safety/paused_runs.py",
        old="why=why if told is None else told",
        new="why=why",
        caught_by=f"{_RUNS}::test_the_incident_of_a_run_that_gives_up_a_target_quotes_no_answer",
    ),
    Bug(
        name="a-resumed-run-stays-an-incident",
        breaks="A closing text when it is over: a person resumes a run, and its incident stays open.",
        file="reprocessing/store/runs/run_transitions.py",
        old="        conclude_standstills([run])\n",
        new="        pass\n",
        caught_by=f"{_RUNS}::test_a_run_that_pauses_itself_is_announced_once_and_concluded_when_resumed",
    ),
    Bug(
        name="a-run-finishes-in-silence",
        breaks="A person is told: a run is finished, and nobody hears of it.",
        file="reprocessing/store/runs/progress.py",
        old="        announce_finished(finished)\n",
        new="",
        caught_by=f"{_RUNS}::test_a_finished_run_is_announced_once_with_its_counts",
    ),
    Bug(
        name="a-group-that-is-there-is-told-as-new",
        breaks="One text for many messages: each batch of a failure group is told as a new group.",
        file="reprocessing/store/parking_lot/failure_groups.py",
        old="announce_groups([group for group in put if group.new] + reopened)",
        new="announce_groups(put + reopened)",
        caught_by=f"{_TOLD}/test_group_events.py::test_grouping_into_existing_groups_runs_five_statements",
    ),
    Bug(
        name="a-second-restore-is-taken-for-the-first",
        breaks="A person is told: the restored database knows an earlier restore as told, and this one is not.",
        file="reprocessing/store/maintenance/restore_hold.py",
        old="        conclude([_INCIDENT])  # of an earlier restore, which was notified before the backup\n",
        new="",
        caught_by=f"{_TOLD}/test_restore_events.py::test_a_second_restore_is_a_new_incident",
    ),
    Bug(
        name="a-condition-flaps",
        breaks="A condition near its threshold opens and closes with every look.",
        file="reprocessing/domain/notifications/hysteresis.py",
        old="value >= threshold * BACK if is_open else value > threshold",
        new="value > threshold",
        caught_by="tests/reprocessing/domain/notifications/test_hysteresis.py"
        "::test_a_condition_opens_above_its_threshold_and_closes_below_three_quarters_of_it",
    ),
    Bug(
        name="as-many-as-the-threshold-are-more",
        breaks="More parked messages than the threshold: people are notified of exactly as many.",
        file="reprocessing/domain/notifications/hysteresis.py",
        old="else value > threshold",
        new="else value >= threshold",
        caught_by=f"{_CONDITIONS}::test_no_more_than_the_threshold_are_none_and_the_next_dlq_is_an_incident_of_its_own",
    ),
    Bug(
        name="an-outage-of-all-workers-stalls-every-run",
        breaks="Workers that are back are given time: each of their runs is told as standing still.",
        file="reprocessing/pipeline/notifications/conditions.py",
        old="    if back_for < min(long, _BACK_FOR):\n",
        new="    if back_for < 0:\n",
        caught_by=f"{_CONDITIONS}::test_a_run_does_not_stand_still_because_all_workers_were_away",
    ),
    Bug(
        name="a-stalled-run-is-over-because-nobody-looked",
        breaks="Only a condition that does not hold is over: workers were away, and a stalled run is told as moving.",
        file=_LOOK,
        old="(NotKnown(*place) for place in is_open if place[0] is EventKind.RUN_STALLED)",
        new="_all_of((EventKind.RUN_STALLED,), [], is_open)",
        caught_by=f"{_CONDITIONS}::test_a_run_that_stood_still_before_all_workers_were_away_is_not_told_as_over",
    ),
    Bug(
        name="growth-is-over-because-nobody-took-notes",
        breaks="Only a condition that does not hold is over: without notes a DLQ is told as no longer growing.",
        file="reprocessing/domain/notifications/dlq_growth.py",
        old="        return GrowthUnknown()\n    first",
        new="        return NotGrowing()\n    first",
        caught_by=f"{_CONDITIONS}::test_growth_is_over_when_notes_say_so_and_not_when_nobody_took_any",
    ),
    Bug(
        name="growth-is-compared-with-now",
        breaks="Only a condition that does not hold is over: the newest note is compared with itself.",
        file="reprocessing/domain/notifications/dlq_growth.py",
        old="halfway.seconds_ago < within * _HALFWAY",
        new="halfway.seconds_ago < 0",
        caught_by="tests/reprocessing/domain/notifications/test_dlq_growth.py"
        "::test_whether_one_still_grows_is_not_known_without_a_note_of_halfway",
    ),
    Bug(
        name="a-capture-that-began-ends-an-expiry",
        breaks="Only a condition that does not hold is over: a capture has begun, and no message is told to expire.",
        file=_LOOK,
        old=" if watch.mode == Mode.AUTOMATIC or not watch.captured_until)",
        new=")",
        caught_by=f"{_CONDITIONS}::test_messages_still_expire_while_a_capture_has_not_said_yet_what_it_captured",
    ),
    Bug(
        name="a-run-behind-an-open-breaker-stalls",
        breaks="One incident for one cause: a run that waits for its breaker is told as standing still, too.",
        file="reprocessing/store/notifications/stalled_runs.py",
        old="     WHERE h.obstacle IN ('', '{_UNHEALTHY}')\n",
        new="",
        caught_by=f"{_CONDITIONS}::test_a_run_that_somebody_stopped_or_that_rests_does_not_stand_still",
    ),
    Bug(
        name="who-has-only-begun-to-watch-cries",
        breaks="A restart alarms nobody: a watchdog that has only begun takes old signs for silence.",
        file="reprocessing/domain/notifications/heartbeat.py",
        old="        return True if watched >= silent_for else None\n",
        new="        return True\n",
        caught_by=f"{_HEARTBEAT}::test_who_has_only_begun_to_watch_knows_nothing_however_old_the_signs_are",
    ),
    Bug(
        name="a-suspended-machine-cries",
        breaks="A machine that was suspended alarms nobody: its watchdog counts the time that it slept.",
        file="reprocessing/domain/notifications/heartbeat.py",
        old="    step = min(elapsed, longest)\n",
        new="    step = elapsed\n",
        caught_by=f"{_HEARTBEAT}::test_a_machine_that_was_suspended_has_watched_nothing_meanwhile",
    ),
    Bug(
        name="nobody-delivers-the-silence",
        breaks="A person is told that workers are silent: the text waits for the workers.",
        file="reprocessing/watchdog.py",
        old="            start_delivery(view)\n",
        new="            pass\n",
        caught_by="tests/reprocessing/test_watchdog.py"
        "::test_workers_that_fall_silent_are_one_incident_that_the_others_deliver_and_conclude",
    ),
    Bug(
        name="workers-of-an-old-queue-name-are-silent-for-ever",
        breaks="A closing text when it is over: the control queue was renamed, and the old name stays silent for ever.",
        file="reprocessing/pipeline/notifications/silence.py",
        old="        over |= open_incidents((EventKind.WORKERS_SILENT,))\n",
        new="        pass\n",
        caught_by="tests/reprocessing/test_watchdog.py"
        "::test_workers_that_are_back_under_another_name_of_the_queue_end_the_incident_of_the_old_name",
    ),
    Bug(
        name="an-error-of-an-old-name-stays-for-ever",
        breaks="A closing text when it is over: a DLQ was renamed, and the error of its old name stays for ever.",
        file="reprocessing/pipeline/notifications/checkup.py",
        old="        if of_dlq in checked and subject not in looked:\n",
        new="        if subject is None:\n",
        caught_by="tests/reprocessing/pipeline/notifications/test_checkup.py"
        "::test_an_error_of_a_part_that_there_is_no_more_is_over",
    ),
    Bug(
        name="what-the-doctor-cannot-see-is-well",
        breaks="An error is over when it is gone: a part that cannot be looked at counts as cured.",
        file="reprocessing/pipeline/notifications/checkup.py",
        old="        elif FindingSeverity.UNKNOWN not in grades:\n",
        new="        else:\n",
        caught_by="tests/reprocessing/pipeline/notifications/test_checkup.py"
        "::test_an_error_is_told_once_without_what_aws_answered_and_concluded_when_it_is_gone",
    ),
)
