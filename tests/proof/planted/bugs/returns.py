"""A return is the same letter, failed again: known by its id or its marks, counted once, never just deleted."""

from __future__ import annotations

from typing import Final

from tests.proof.planted.bug import Bug

_HOMECOMING: Final = "reprocessing/store/capture/returned_messages.py"
_ARRIVAL: Final = "reprocessing/store/capture/received_copies.py"
_OF_CAPTURE: Final = "tests/reprocessing/pipeline/capture/test_capture.py"
_OF_READER: Final = "tests/reprocessing/pipeline/capture/test_another_reader.py"
_UNKNOWN: Final = "tests/reprocessing/pipeline/replay/test_an_earlier_attempt_of_unknown_end.py"
_SUPERSEDED: Final = f"{_OF_CAPTURE}::test_a_return_of_an_older_attempt_is_recorded_and_moves_nothing"

BUGS: Final = (
    Bug(
        name="a-late-return-is-deleted",
        breaks="No loss: a delivered letter that comes back is deleted from the dlq, and nothing else.",
        file="reprocessing/pipeline/capture/capture.py",
        old="        held = rows.in_transaction(record)\n",
        new="        held: list[Deletable] = []\n",
        caught_by=f"{_OF_CAPTURE}::test_a_return_reopens_a_letter_that_was_delivered",
    ),
    Bug(
        name="delivered-is-for-ever",
        breaks="No loss: a return does not reopen a letter that was called delivered.",
        file=_HOMECOMING,
        old="       AND l.state IN ('waiting', 'sending', 'awaiting', 'delivered', 'parked', 'discarded')",
        new="       AND l.state IN ('waiting', 'sending', 'awaiting', 'parked', 'discarded')",
        caught_by=f"{_OF_CAPTURE}::test_a_return_reopens_a_letter_that_was_presumed_delivered",
    ),
    Bug(
        name="a-superseded-return-moves-its-letter",
        breaks="Only the newest attempt's return moves the letter: it is sent again while it is under way.",
        file=_HOMECOMING,
        old=(
            "       AND NOT EXISTS (SELECT FROM redrive_attempt later"
            " WHERE later.letter_id = l.id AND later.no > c.no\n"
            "                          AND later.outcome IS DISTINCT FROM 'not_sent')\n"
        ),
        new="",
        caught_by=_SUPERSEDED,
    ),
    Bug(
        name="a-return-counts-as-often-as-it-is-received",
        breaks="A return counts once: each copy of it raises the epoch and rests the letter anew.",
        file=_HOMECOMING,
        old="     WHERE a.id = b.attempt_id AND a.returned_at IS NULL\n",
        new="     WHERE a.id = b.attempt_id\n",
        caught_by=f"{_OF_CAPTURE}::test_two_copies_of_one_return_are_one_failure",
    ),
    Bug(
        name="two-copies-in-one-receive-count-twice",
        breaks="A return counts once: which of two copies of one receive closes the attempt is left to chance.",
        file=_HOMECOMING,
        old="      FROM (SELECT DISTINCT ON (attempt_id) * FROM back) b\n",
        new="      FROM (SELECT * FROM back WHERE message_id = (SELECT max(message_id) FROM back WHERE false)) b\n",
        caught_by=f"{_OF_CAPTURE}::test_two_copies_of_one_return_in_one_receive_are_one_failure",
    ),
    Bug(
        name="a-return-keeps-its-epoch",
        breaks=(
            "FIFO targets swallow repeats, not retries: what came back is sent under the id that was swallowed for it."
        ),
        file=_HOMECOMING,
        old="       SET epoch = l.epoch + 1, frees_lane = false, presumed = false,\n",
        new="       SET frees_lane = false, presumed = false,\n",
        caught_by=f"{_OF_CAPTURE}::test_a_return_reopens_a_letter_that_was_delivered",
    ),
    Bug(
        name="a-return-keeps-its-key",
        breaks="A key is free after a return: the letter's twins are closed as duplicates of what failed.",
        file=_HOMECOMING,
        old="THEN 'discarded' ELSE 'free' END AS claim, c.until",
        new="THEN 'discarded' END AS claim, c.until",
        caught_by=f"{_OF_CAPTURE}::test_a_return_frees_the_key_of_its_letter",
    ),
    Bug(
        name="a-return-frees-the-key-of-a-copy-nobody-heard-of",
        breaks="While a copy of an earlier attempt may lie in the target, the key is held, and the next letter waits.",
        file="reprocessing/store/replay/settlement_effects.py",
        old="               AND a.outcome = 'unknown' AND a.returned_at IS NULL AND {COPY_ENDS} > redrive_now()) u\n",
        new="               AND a.outcome = 'unknown' AND false AND {COPY_ENDS} > redrive_now()) u\n",
        caught_by=f"{_UNKNOWN}::test_a_later_failure_keeps_the_key",
    ),
    Bug(
        name="a-parked-letter-forgets-its-other-copy",
        breaks="A parked letter whose last attempt fails late keeps its lane while an earlier copy may come back.",
        file="reprocessing/store/replay/settlement_effects.py",
        old="c.was_open AND coalesce(u.outlasts, false) AS reopens",
        new="false AS reopens",
        caught_by=f"{_UNKNOWN}::test_if_one_of_two_unknown_attempts_fails_the_next_letter_waits",
    ),
    Bug(
        name="a-last-return-ends-a-letter-of-which-a-copy-may-be-about",
        breaks="The letter that came back after its last attempt keeps its lane while an earlier copy may come back.",
        file="reprocessing/store/replay/settlement_effects.py",
        old="c.spent AND NOT coalesce(u.outlasts, false) AS ends",
        new="c.spent AS ends",
        caught_by=f"{_UNKNOWN}::test_after_the_last_attempt_the_next_letter_waits_for_both_copies",
    ),
    Bug(
        name="a-return-overrules-a-person",
        breaks="What a person is to decide, or has decided, stays: a return takes the letter out of the parking lot.",
        file=_HOMECOMING,
        old="           state = CASE WHEN {STAYS} THEN l.state WHEN",
        new="           state = CASE WHEN false THEN l.state WHEN",
        caught_by=(f"{_OF_CAPTURE}::test_a_return_changes_no_parked_or_discarded_letter"),
    ),
    Bug(
        name="returns-known-by-their-body-alone",
        breaks="Equal bytes are no return: another message with the body of a delivered letter disappears into it.",
        file=_ARRIVAL,
        old=(
            "(SELECT * FROM redrive_letter x WHERE x.public_id = s.public_id OFFSET 0) l\n"
            "     CROSS JOIN LATERAL ("
            "SELECT * FROM redrive_attempt x WHERE x.letter_id = l.id AND x.no = s.no OFFSET 0) a\n"
        ),
        new=(
            "(SELECT * FROM redrive_letter x WHERE x.body_hash = s.body_hash OFFSET 0) l\n"
            "     CROSS JOIN LATERAL (SELECT * FROM redrive_attempt x WHERE x.letter_id = l.id OFFSET 0) a\n"
        ),
        caught_by=f"{_OF_CAPTURE}::test_equal_bytes_without_a_redrive_id_are_a_new_letter",
    ),
    Bug(
        name="marks-are-believed-on-any-body",
        breaks="A mark travels along when a consumer hands a letter on: another body under it is another letter.",
        file=_ARRIVAL,
        old="(l.body_hash = s.body_hash OR t.kind = 'celery' OR EXISTS (\n",
        new="(true OR EXISTS (\n",
        caught_by=f"{_OF_CAPTURE}::test_a_redrive_id_on_another_body_is_a_new_letter",
    ),
    Bug(
        name="marks-are-believed-wherever-they-died",
        breaks="A mark tells a return only where it died in the attempt's target.",
        file=_ARRIVAL,
        old="AND CASE WHEN s.source IS NOT NULL THEN t.arn = s.source\n",
        new="AND CASE WHEN s.source IS NOT NULL THEN true\n",
        caught_by=(
            "tests/reprocessing/pipeline/capture/test_returned_copies.py"
            "::test_a_message_that_failed_in_another_queue_is_a_new_letter"
        ),
    ),
    Bug(
        name="sent-ids-are-not-looked-for",
        breaks="A return is known by the id its target gave it: without marks it becomes a second letter.",
        file=_ARRIVAL,
        old="WHERE x.sent_message_id = s.message_id OFFSET 0) a\n",
        new="WHERE x.sent_message_id = s.message_id AND false OFFSET 0) a\n",
        caught_by=f"{_OF_CAPTURE}::test_a_return_is_recognised_by_the_message_id_of_the_target",
    ),
    Bug(
        name="without-marks-a-possible-return-goes",
        breaks="At least once, same key: what may be a return of a letter under way is sent as another letter.",
        file="reprocessing/pipeline/capture/capture.py",
        old="possible_return=digest in doubtful,\n",
        new="possible_return=False,\n",
        caught_by=f"{_OF_CAPTURE}::test_without_redrive_ids_a_possible_return_is_parked",
    ),
    Bug(
        name="swallowed-resends-are-awaited",
        breaks="No loss: a FIFO target swallowed a resend for a copy that is back already, and absence is presumed.",
        file="reprocessing/pipeline/replay/settle.py",
        old="    back = returned_attempts(taken) if taken else set()\n",
        new="    back = returned_attempts({}) if taken else set()\n",
        caught_by="tests/race/test_swallowed.py::test_a_resend_deduplicated_against_a_copy_that_returned_has_failed",
    ),
    Bug(
        name="evidence-of-a-lost-owner-is-dropped",
        breaks="A return is known by the id its target gave it: whoever lost its lane does not note it.",
        file="reprocessing/pipeline/replay/settle.py",
        old="        if lost:\n",
        new="        if lost and not ordered:\n",
        caught_by=(
            "tests/reprocessing/pipeline/replay/test_replay_slice.py"
            "::test_a_worker_that_lost_its_lane_writes_only_its_evidence"
        ),
    ),
    Bug(
        name="copies-in-sight-excuse-another-reader",
        breaks="No loss: a letter is presumed delivered whose return another reader hides, for a copy in sight again.",
        file="reprocessing/store/capture/capture_lease.py",
        old="state = 'held' AND visible_until > redrive_now() AND NOT {COPY_IS_UNSEEN})",
        new="state = 'held' AND NOT {COPY_IS_UNSEEN})",
        caught_by=(f"{_OF_READER}::test_a_copy_deleted_by_somebody_else_hides_no_return"),
    ),
    Bug(
        name="a-reader-is-looked-for-before-the-lease",
        breaks="No loss: what another capture hides after SQS counted excuses a reader who hides a return.",
        file="reprocessing/pipeline/runs/feed_run.py",
        old="            alone=lambda: is_ours_alone(dlq, conf),\n",
        new="            alone=(lambda said: lambda: said)(is_ours_alone(dlq, conf)),\n",
        caught_by=(f"{_OF_READER}::test_copies_hidden_after_the_count_hide_no_return"),
    ),
    Bug(
        name="a-reader-is-looked-for-once",
        breaks="No loss: a letter is presumed delivered whose return a reader hides who came during the capture.",
        file="reprocessing/pipeline/capture/capture.py",
        old="        proves = drained and was_alone and alone()",
        new="        proves = drained and was_alone",
        caught_by=(f"{_OF_READER}::test_no_absence_when_a_reader_comes_during_the_capture"),
    ),
    Bug(
        name="copies-are-hidden-without-a-word-of-sqs",
        breaks="No loss: a letter is presumed delivered whose return another reader hides, for a copy that is gone.",
        file="reprocessing/pipeline/runs/feed_run.py",
        old=(
            "    capture_lease.mark_extended(dlq.pk, [copy for copy in perhaps if copy.message_id in hidden], "
            "until=until)\n"
            "    return bool(hidden)\n"
        ),
        new=("    capture_lease.mark_extended(dlq.pk, perhaps, until=until)\n    return True\n"),
        caught_by=(f"{_OF_READER}::test_a_copy_deleted_by_somebody_else_hides_no_return"),
    ),
    Bug(
        name="a-return-recorded-when-anybody-may-have-it",
        breaks="Returns: one is recorded, and deleted by a handle that may be another's by now.",
        file="reprocessing/store/capture/returned_messages.py",
        old="     WHERE redrive_now() < %(until)b::timestamptz\n",
        new="",
        caught_by="tests/race/test_a_capture_loses_its_dlq.py"
        "::test_a_return_whose_capture_froze_until_it_was_visible_is_neither_recorded_nor_deleted",
    ),
    Bug(
        name="spent-before-it-was-released",
        breaks="People: a letter that was released while its return was looked at is parked as spent.",
        file="reprocessing/store/capture/returned_messages.py",
        old="(SELECT l.attempts - l.attempts_before_release - l.spared >= d.max_attempts AND",
        new="(SELECT l.attempts - l.spared >= d.max_attempts AND",
        caught_by="tests/reprocessing/pipeline/capture/test_capture.py"
        "::test_a_letter_released_during_its_return_is_not_parked",
    ),
    Bug(
        name="what-is-told-of-has-not-passed",
        breaks="In order: a letter whose worker died, and that came to its end, lets earlier ones follow it.",
        file="reprocessing/store/replay/settlement_effects.py",
        old='went="(SELECT letter_id FROM closed WHERE was_open)"',
        new='went="(SELECT letter_id FROM closed WHERE false)"',
        caught_by="tests/reprocessing/pipeline/replay/test_an_earlier_attempt_of_unknown_end.py"
        "::test_a_letter_sent_by_a_dead_worker_makes_an_earlier_letter_stale",
    ),
    Bug(
        name="a-return-is-an-older-attempt-s",
        breaks="No loss: the return of a copy for which a resend was swallowed leaves the resend to be presumed.",
        file=_ARRIVAL,
        old=" ORDER BY met.message_id, met.rank, met.no DESC\n",
        new=" ORDER BY met.message_id, met.rank, met.no\n",
        caught_by=("tests/race/test_swallowed.py::test_the_return_of_a_copy_of_two_attempts_fails_the_newer_attempt"),
    ),
    Bug(
        name="attempts-of-earlier-tools-come-back",
        breaks="A mark with a number that this service never gave is no return: the message disappears into a letter.",
        file="reprocessing/store/capture/returns_without_attempt.py",
        old="   AND s.no > l.earlier\n",
        new="",
        caught_by=f"{_OF_CAPTURE}::test_a_redrive_id_with_an_attempt_of_earlier_tools_is_a_new_letter",
    ),
)
