"""No loss: what is deleted from a dlq, and when; what a capture proves."""

from __future__ import annotations

from typing import Final

from tests.proof.planted.bug import Bug

_CAPTURE: Final = "reprocessing/pipeline/capture/capture.py"
_CAPTURES: Final = "reprocessing/store/capture/capture_lease.py"
_OF_CAPTURE: Final = "tests/reprocessing/pipeline/capture/test_capture.py"
_OF_LOSS: Final = "tests/race/test_a_capture_loses_its_dlq.py"
_OF_RECOVER: Final = "tests/reprocessing/pipeline/maintenance/test_recover.py"

BUGS: Final = (
    Bug(
        name="captured-copies-deleted-before-their-commit",
        breaks="No loss: a message is deleted from the dlq before its letter is committed.",
        file=_CAPTURE,
        old="            deletable += step(copies) if copies else []\n",
        new=(
            "            if self._at_capture:\n"
            "                early = [Deletable(self._dlq.pk, one.message_id, one.handle) for one in copies.values()]\n"
            "                delete_copies.delete_from_dlq(self._dlq, early)\n"
            "            deletable += step(copies) if copies else []\n"
        ),
        caught_by=f"{_OF_CAPTURE}::test_a_message_that_was_not_committed_stays_in_the_dlq",
    ),
    Bug(
        name="a-handle-noted-though-its-time-is-over",
        breaks="No loss: a capture that froze notes a handle that is not the latest, whose delete does nothing.",
        file="reprocessing/store/capture/received_copies.py",
        old="       AND l.id = c.letter_id AND redrive_now() < %(until)b::timestamptz\n",
        new="       AND l.id = c.letter_id\n",
        caught_by=f"{_OF_LOSS}::test_a_frozen_capture_does_not_record_its_handle_after_another_received_the_copy",
    ),
    Bug(
        name="hidden-from-when-it-was-noted",
        breaks="No loss: a copy counts as hidden that has come to sight, for a return that another reader hides.",
        file="reprocessing/pipeline/runs/feed_run.py",
        old=(
            "    capture_lease.mark_extended(dlq.pk, [copy for copy in perhaps if copy.message_id in hidden], "
            "until=until)\n"
        ),
        new=(
            "    until = lanes.database_now() + timedelta(seconds=conf.receive_visibility)\n"
            "    capture_lease.mark_extended(dlq.pk, [copy for copy in perhaps if copy.message_id in hidden], "
            "until=until)\n"
        ),
        caught_by=(
            "tests/reprocessing/pipeline/capture/test_another_reader.py"
            "::test_a_copy_visible_again_after_a_freeze_hides_no_return"
        ),
    ),
    Bug(
        name="what-was-not-written-counts-as-drained",
        breaks="No loss: a capture that froze past its copies' time wrote nothing, and says that all is written.",
        file=_CAPTURE,
        old="            self._hides = True\n            return True\n",
        new="            return True\n",
        caught_by=(
            f"{_OF_LOSS}::test_a_capture_that_froze_until_its_copy_was_visible_writes_nothing_and_proves_nothing"
        ),
    ),
    Bug(
        name="a-letter-admitted-when-anybody-may-have-it",
        breaks="No doubles: a letter is written down that AWS's own redrive may have moved since it was received.",
        file="reprocessing/store/capture/received_copies.py",
        old="         expires_at, possible_return)\n     WHERE redrive_now() < %(until)b::timestamptz\n",
        new="         expires_at, possible_return)\n",
        caught_by=(
            f"{_OF_LOSS}::test_a_capture_that_froze_until_its_copy_was_visible_writes_nothing_and_proves_nothing"
        ),
    ),
    Bug(
        name="gone-by-an-older-handle",
        breaks="Handles: SQS confirms a delete by an older handle, and does nothing; the copy counts as gone.",
        file=_CAPTURES,
        old=" AND c.handle = g.handle AND c.state || '' NOT IN ('held', 'gone')\n",
        new=" AND c.state || '' NOT IN ('held', 'gone')\n",
        caught_by=f"{_OF_LOSS}::test_a_copy_deleted_by_an_older_handle_is_not_gone",
    ),
    Bug(
        name="a-letter-written-meanwhile-keeps-its-handle",
        breaks="No loss: the handle is not noted under which a letter was received that a frozen capture just wrote.",
        file=_CAPTURE,
        old="for letter in new if letter.message_id not in written]",
        new="for letter in new if not written and not new]",
        caught_by=(f"{_OF_LOSS}::test_a_letter_written_by_a_frozen_capture_gets_the_handle_of_a_later_receive"),
    ),
    Bug(
        name="copies-of-closed-heads-deleted-before-their-commit",
        breaks="No loss: a copy is deleted before the letter's end is committed, which then is rolled back.",
        file="reprocessing/pipeline/replay/settle.py",
        old="        deletable = close_letters(closed)\n",
        new=(
            "        from reprocessing.pipeline.capture import delete_copies\n"
            "\n"
            "        deletable = close_letters(closed)\n"
            "        delete_copies.everywhere(deletable)\n"
        ),
        caught_by=f"{_OF_CAPTURE}::test_a_settlement_that_is_rolled_back_deletes_nothing",
    ),
    Bug(
        name="copies-of-settled-letters-deleted-before-their-commit",
        breaks="No loss: a copy is deleted before its letter's delivery is committed, which then is rolled back.",
        file="reprocessing/pipeline/replay/settle.py",
        old="        deletable = settle_attempts(final)\n",
        new=(
            "        from reprocessing.pipeline.capture import delete_copies\n"
            "\n"
            "        deletable = settle_attempts(final)\n"
            "        delete_copies.everywhere(deletable)\n"
        ),
        caught_by="tests/reprocessing/pipeline/replay/test_settle.py::test_an_outcome_that_is_rolled_back_deletes_nothing",
    ),
    Bug(
        name="copies-of-promoted-letters-deleted-before-their-commit",
        breaks="No loss: a copy is deleted before its letter's promotion is committed, which then is rolled back.",
        file="reprocessing/pipeline/outcomes/resolve_outcomes.py",
        old="        deletable = close([attempt.attempt_id for attempt in found])\n",
        new=(
            "        deletable = close([attempt.attempt_id for attempt in found])\n"
            "        delete_copies.delete_from_dlqs(deletable)\n"
        ),
        caught_by="tests/reprocessing/pipeline/outcomes/test_resolve_outcomes.py::test_a_promotion_that_is_rolled_back_deletes_nothing",
    ),
    Bug(
        name="held-copies-deleted-at-capture",
        breaks="No loss: a dlq that keeps copies until their letters are finished is emptied at once.",
        file=_CAPTURE,
        old="        if not at_capture:\n            self._held += len(written)\n            return known\n",
        new="        self._held += len(written)\n",
        caught_by=f"{_OF_CAPTURE}::test_a_copy_stays_in_the_dlq_until_its_letter_is_finished",
    ),
    Bug(
        name="copies-of-awaiting-letters-deleted",
        breaks="No loss: the copy goes while it is not known whether the letter was delivered.",
        file="reprocessing/store/replay/settlement_effects.py",
        old="     WHERE m.state IN ('delivered', 'parked', 'duplicate', 'discarded') AND c.dlq_id",
        new="     WHERE m.state IN ('awaiting', 'delivered', 'parked', 'duplicate', 'discarded') AND c.dlq_id",
        caught_by=(
            "tests/reprocessing/pipeline/replay/test_settle.py::test_with_outcome_absence_the_attempt_stays_open"
        ),
    ),
    Bug(
        name="unfinished-copies-swept",
        breaks="No loss: the sweep marks copies of letters for deletion that are not finished.",
        file=_CAPTURES,
        old="              IN ('delivered', 'parked', 'duplicate', 'discarded')))",
        new="              <> 'captured'))",
        caught_by=f"{_OF_RECOVER}::test_copies_of_unfinished_letters_are_not_deleted",
    ),
    Bug(
        name="known-copies-always-deleted",
        breaks="No loss: a message that is received twice is deleted, though its letter is not finished.",
        file="reprocessing/store/capture/received_copies.py",
        old=(
            "                     AND l.state IN ('captured', 'waiting', 'sending', 'awaiting') THEN 'held' ELSE "
            "'delete' END"
        ),
        new="                     AND l.state IN ('sending', 'awaiting') THEN 'held' ELSE 'delete' END",
        caught_by=f"{_OF_CAPTURE}::test_a_message_received_twice_is_one_letter",
    ),
    Bug(
        name="known-copies-never-deleted",
        breaks="A finished letter's copy is deleted when it is received again: it comes back for ever.",
        file="reprocessing/store/capture/received_copies.py",
        old="       state = CASE WHEN c.attempt_id IS NULL AND NOT %(at_capture)b::bool\n",
        new="       state = CASE WHEN true OR c.attempt_id IS NULL AND NOT %(at_capture)b::bool\n",
        caught_by=f"{_OF_CAPTURE}::test_a_copy_of_a_finished_letter_is_deleted",
    ),
    Bug(
        name="gone-is-forgotten",
        breaks="Identity outlives history: a deleted copy that turns up again is a letter that nobody knows.",
        file=_CAPTURES,
        old="UPDATE redrive_dlq_copy c SET state = 'gone', gone_at = redrive_now()\n  FROM unnest(",
        new="DELETE FROM redrive_dlq_copy c\n USING unnest(",
        caught_by=f"{_OF_CAPTURE}::test_a_copy_stays_in_the_dlq_until_its_letter_is_finished",
    ),
    Bug(
        name="what-was-not-deleted-is-gone",
        breaks="Success is gone, failure is left: a copy that SQS did not delete is never deleted.",
        file="reprocessing/pipeline/capture/delete_copies.py",
        old="    gone = [copy for copy in deletable if copy.message_id in done.gone]\n",
        new="    gone = list(deletable) if done else []\n",
        caught_by=(
            "tests/reprocessing/pipeline/capture/test_capture.py::test_a_copy_that_sqs_did_not_delete_stays_to_be_deleted"
        ),
    ),
    Bug(
        name="an-id-left-out-is-gone",
        breaks="What an answer does not name is not known: a copy is called deleted without a word of SQS.",
        file="reprocessing/gateways/sqs/received_handles.py",
        old="    failed = dict.fromkeys((each for each in ids if each not in done), ",
        new=(
            '    done |= set(ids) - {numbers[entry["Id"]] for entry in answer.get("Failed", [])}\n'
            "    failed = dict.fromkeys((each for each in ids if each not in done), "
        ),
        caught_by="tests/reprocessing/gateways/sqs/test_received_handles.py::test_an_id_that_the_answer_leaves_out_is_not_gone",
    ),
    Bug(
        name="nothing-is-extended",
        breaks="Copies of letters under way stay out of sight: they come to sight, and natural expiry takes them.",
        file="reprocessing/pipeline/maintenance/recover.py",
        old="    while found := capture_lease.copies_to_extend(dlq.pk, within=within, limit=_GROUP):\n",
        new="    while found := capture_lease.copies_to_extend(dlq.pk, within=within, limit=0):\n",
        caught_by=f"{_OF_RECOVER}::test_copies_of_letters_under_way_stay_out_of_sight_for_longer_once",
    ),
    Bug(
        name="forgotten-while-a-copy-may-turn-up",
        breaks="Identity outlives history: a letter is purged while its copy could be received again.",
        file="reprocessing/store/maintenance/retention.py",
        old="                        > redrive_now() - make_interval(secs => d.retention) - interval '1 day')",
        new="                        > redrive_now())",
        caught_by=(
            "tests/reprocessing/store/maintenance/test_retention.py"
            "::test_a_copy_is_known_for_the_retention_and_a_day_after_its_deletion"
        ),
    ),
    Bug(
        name="what-aws-moved-of-an-interrupted-run-is-sent-once-more",
        breaks="No duplicates: letters of a paused run, which somebody's AWS redrive moved, go when it is resumed.",
        file="reprocessing/store/capture/moved_by_aws.py",
        old="AND l.state IN ('captured', 'waiting', 'sending', 'awaiting')\n",
        new="AND l.state = 'captured'\n",
        caught_by=(
            "tests/reprocessing/pipeline/aws/test_moved_meanwhile.py"
            "::test_what_aws_moved_while_a_run_was_interrupted_is_parked_when_a_capture_has_looked"
        ),
    ),
    Bug(
        name="committed-to-what-aws-has-just-moved",
        breaks="No duplicates: a head that was judged before the look at AWS is sent after it.",
        file="reprocessing/store/replay/intent.py",
        old=" AND l.blocked_reason <> 'moved_by_aws'\n",
        new="\n",
        caught_by=(
            "tests/reprocessing/pipeline/aws/test_moved_meanwhile.py::test_what_is_committed_to_a_moment_later_is_not_sent"
        ),
    ),
    Bug(
        name="parked-before-a-capture-has-looked",
        breaks="What AWS did not move goes on once it is seen: it is parked as moved before anybody has looked.",
        file="reprocessing/pipeline/replay/gate.py",
        old="return Park(ParkedReason.MOVED_BY_AWS) if standing.gone else Wait(UNTIL_CAPTURED, MAYBE_MOVED)\n",
        new="return Park(ParkedReason.MOVED_BY_AWS)\n",
        caught_by=(
            "tests/reprocessing/pipeline/aws/test_moved_meanwhile.py"
            "::test_what_aws_moved_while_a_run_was_interrupted_is_parked_when_a_capture_has_looked"
        ),
    ),
    Bug(
        name="forgotten-while-its-lane-waits-for-it",
        breaks="A letter whose last attempt is open is purged, and its lane waits for it for ever.",
        file="reprocessing/store/maintenance/retention.py",
        old="WHERE a.letter_id = l.id AND a.closed_at IS NULL)",
        new="WHERE a.letter_id = l.id AND false)",
        caught_by=(
            "tests/reprocessing/store/maintenance/test_retention.py"
            "::test_a_letter_is_not_deleted_while_its_lane_waits_for_it_to_come_back"
        ),
    ),
    Bug(
        name="drained-after-one-empty-poll",
        breaks="A dlq has run dry when every receiver heard nothing three times: one false-empty answer is believed.",
        file="reprocessing/pipeline/capture/receivers.py",
        old="EMPTY_POLLS = 3\n",
        new="EMPTY_POLLS = 1\n",
        caught_by="tests/reprocessing/pipeline/capture/test_receivers.py::test_a_false_empty_answer_does_not_end_a_capture",
    ),
    Bug(
        name="silence-behind-what-is-held",
        breaks="A FIFO queue's silence counts only while nothing is out: it hides what is behind a received message.",
        file="reprocessing/pipeline/capture/receivers.py",
        old="        elif not hidden:\n",
        new="        elif hidden is not None:\n",
        caught_by=(
            "tests/reprocessing/pipeline/capture/test_receivers.py"
            "::test_a_fifo_capture_ends_when_every_group_is_received"
        ),
    ),
    Bug(
        name="a-copy-that-stayed-hides-nothing",
        breaks="Evidence: a FIFO dlq counts as drained though a copy that was not deleted hid what is behind it.",
        file=_CAPTURE,
        old="            self._hides |= self._dlq.fifo\n",
        new="            self._hides = False\n",
        caught_by=(
            "tests/reprocessing/pipeline/capture/test_receivers.py"
            "::test_a_fifo_dlq_is_not_drained_behind_a_copy_that_was_not_deleted"
        ),
    ),
    Bug(
        name="a-clean-capture-vouches-for-a-dead-one",
        breaks="Evidence: what a killed capture had received is out of sight, and the dlq counts as drained.",
        file=_CAPTURES,
        old='        "drained": drained and clean and capturing.clean,\n',
        new='        "drained": drained and clean,\n',
        caught_by=(
            "tests/race/test_a_capture_loses_its_dlq.py"
            "::test_a_clean_capture_proves_nothing_while_copies_of_a_dead_one_are_invisible"
        ),
    ),
    Bug(
        name="enlisted-behind-what-a-dead-capture-hid",
        breaks="In order: what a killed capture had received is out of sight, and later letters are enlisted.",
        file=_CAPTURE,
        old="        self._done.drained = newest is not None and drained and self._capturing.clean\n",
        new="        self._done.drained = newest is not None and drained\n",
        caught_by=(
            "tests/race/test_a_capture_loses_its_dlq.py"
            "::test_a_clean_capture_proves_nothing_while_copies_of_a_dead_one_are_invisible"
        ),
    ),
    Bug(
        name="trouble-proves-as-well",
        breaks="Evidence: what a lost answer put out of sight is forgotten, and the next capture counts as drained.",
        file=_CAPTURE,
        old="        clean = not trouble and not self._hides\n",
        new="        clean = not self._hides\n",
        caught_by=f"{_OF_CAPTURE}::test_after_a_lost_answer_nothing_counts_as_drained_for_a_while",
    ),
    Bug(
        name="hidden-from-when-it-is-written-down",
        breaks="Handles: a copy counts as hidden for longer than it is, and is kept by a handle that is another's.",
        file=_CAPTURE,
        old="self._conf.receive_visibility - (self._clock() - self._asked))\n",
        new="float(self._conf.receive_visibility))\n",
        caught_by="tests/reprocessing/pipeline/capture/test_capture.py::test_a_copy_written_late_is_hidden_from_when_it_was_received",
    ),
    Bug(
        name="an-observed-dlq-is-received-from",
        breaks="Nothing acts by surprise: a dlq that is only observed is received from.",
        file=_CAPTURES,
        old="         WHERE id = %(dlq)b AND mode <> 'observe' AND coalesce(",
        new="         WHERE id = %(dlq)b AND coalesce(",
        caught_by=f"{_OF_CAPTURE}::test_an_observed_dlq_is_never_received_from",
    ),
    Bug(
        name="a-capture-waits-for-who-names-its-dlq",
        breaks="A DLQ is captured in its turn: whoever writes a row that names it passes for another capture.",
        file="reprocessing/store/capture/capture_lease.py",
        old="FOR NO KEY UPDATE SKIP LOCKED) free\n",
        new="FOR UPDATE SKIP LOCKED) free\n",
        caught_by="tests/race/test_captures.py::test_a_new_row_that_names_a_dlq_keeps_nobody_from_capturing_it",
    ),
    Bug(
        name="a-turn-waits-for-who-names-its-dlq",
        breaks="A DLQ is captured in its turn: whoever writes a row that names it keeps it from its turn.",
        file="reprocessing/store/dlqs/schedule.py",
        old="skip_locked=True, no_key=True, of",
        new="skip_locked=True, of",
        caught_by="tests/race/test_captures.py::test_a_new_row_that_names_a_dlq_keeps_nobody_from_capturing_it",
    ),
    Bug(
        name="a-chunk-is-cut",
        breaks="What counts as drained was written: what is beyond a chunk's size is dropped, and turns up later.",
        file=_CAPTURE,
        old="        copies = {arrival.message_id: arrival for arrival in self._waiting}\n",
        new="        copies = {arrival.message_id: arrival for arrival in self._waiting[:CHUNK]}\n",
        caught_by=f"{_OF_CAPTURE}::test_a_chunk_is_written_as_soon_as_it_is_full",
    ),
    Bug(
        name="a-chunk-has-no-size",
        breaks="A capture holds a chunk in memory, and no more: it writes by time alone.",
        file=_CAPTURE,
        old="        ripe = len(self._waiting) >= CHUNK or time",
        new="        ripe = time",
        caught_by=f"{_OF_CAPTURE}::test_a_chunk_is_written_as_soon_as_it_is_full",
    ),
    Bug(
        name="aws-moved-what-it-could-not-see",
        breaks="AWS moves nothing that is out of sight while it works: such letters wait for a person all the same.",
        file="reprocessing/store/aws/aws_redrives.py",
        old="        return moved_by_aws.mark_moved(dlq, until=moved + MAX_DURATION)\n",
        new="        return moved_by_aws.mark_moved(dlq)\n",
        caught_by="tests/reprocessing/pipeline/aws/test_moved_meanwhile.py"
        "::test_what_was_out_of_sight_for_as_long_as_aws_may_have_worked_goes_on",
    ),
)
