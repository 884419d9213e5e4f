"""What leaves, when, under which identity, and what is believed of the answer."""

from __future__ import annotations

from typing import Final

from tests.proof.planted.bug import Bug

_INTENT: Final = "reprocessing/store/replay/intent.py"
_SENDING: Final = "reprocessing/gateways/sqs/sending.py"
_WRAP: Final = "reprocessing/pipeline/replay/outgoing_message.py"
_OF_SENDING: Final = "tests/reprocessing/gateways/sqs/test_sending.py"
_OF_REPLAY: Final = "tests/reprocessing/pipeline/replay/test_replay_slice.py"
_OF_AN_UNKNOWN_END: Final = "tests/reprocessing/pipeline/replay/test_an_earlier_attempt_of_unknown_end.py"
_OF_CLAIMS: Final = "tests/race/test_claims.py"
_OF_TARGETS: Final = "tests/reprocessing/pipeline/targets/test_every_target.py"

BUGS: Final = (
    Bug(
        name="the-deadline-is-not-asked-for",
        breaks="No send starts after its deadline: requests go out on leases and tokens that are over.",
        file="reprocessing/gateways/sqs/batch_requests.py",
        old="        if not self._may_start():\n",
        new="        if not self._may_start:\n",
        caught_by=f"{_OF_SENDING}::test_nothing_goes_out_when_it_may_not",
    ),
    Bug(
        name="the-lease-s-end-is-not-asked-for",
        breaks="No send starts after its deadline: before each request only the tokens are asked.",
        file="reprocessing/pipeline/replay/send.py",
        old="            return clock() < min(owned.until, until.get(target_id, math.inf))\n",
        new="            return clock() < until.get(target_id, math.inf)\n",
        caught_by=f"{_OF_REPLAY}::test_no_request_begins_after_the_end_of_the_lease",
    ),
    Bug(
        name="a-token-s-end-is-not-asked-for",
        breaks="Rate is never exceeded: tokens are spent after their life, beside those granted for them since.",
        file="reprocessing/pipeline/replay/send.py",
        old="            return clock() < min(owned.until, until.get(target_id, math.inf))\n",
        new="            return clock() < owned.until\n",
        caught_by=f"{_OF_REPLAY}::test_an_expired_token_sends_nothing_and_counts_nothing",
    ),
    Bug(
        name="sent-twice-by-itself",
        breaks="Nothing is sent twice by itself: the SDK repeats a request whose answer was lost.",
        file="reprocessing/gateways/aws/clients.py",
        old='retries={"mode": "standard", "total_max_attempts": 1}',
        new='retries={"mode": "standard", "total_max_attempts": 3}',
        caught_by=f"{_OF_SENDING}::test_a_lost_answer_leaves_every_fate_unknown_and_nothing_is_sent_again",
    ),
    Bug(
        name="a-partial-failure-is-success",
        breaks="No loss: an entry that SQS refused in a batch that it took counts as taken.",
        file=_SENDING,
        old='        return outcome_of_entry(failed.get("Code", ""), failed.get("Message", ""))\n',
        new='        return Taken("")\n',
        caught_by=f"{_OF_SENDING}::test_each_entry_of_a_batch_has_its_own_fate",
    ),
    Bug(
        name="an-id-left-out-is-taken",
        breaks="No loss: an entry that the answer does not name counts as taken.",
        file=_SENDING,
        old='    return Unknown("the answer of SQS does not name it")\n',
        new='    return Taken("")\n',
        caught_by=f"{_OF_SENDING}::test_a_letter_that_the_answer_does_not_name_has_an_unknown_fate",
    ),
    Bug(
        name="another-digest-is-taken",
        breaks="Bytes are sacred: SQS says that it took another body, and the letter counts as delivered.",
        file=_SENDING,
        old="md5(letter.departure.body, usedforsecurity=False).hexdigest():\n",
        new="md5(letter.departure.body, usedforsecurity=False).hexdigest() and not entry:\n",
        caught_by=f"{_OF_SENDING}::test_a_letter_that_the_answer_does_not_name_has_an_unknown_fate",
    ),
    Bug(
        name="bodies-written-anew",
        breaks="Bytes are sacred: a body that is JSON leaves as other JSON.",
        file=_WRAP,
        old="    return _Content(body, own)\n\n\ndef _unsupported",
        new=(
            "    import json\n\n"
            "    try:\n"
            "        body = json.dumps(json.loads(body)).encode()\n"
            "    except ValueError:\n"
            "        pass\n"
            "    return _Content(body, own)\n\n\ndef _unsupported"
        ),
        caught_by=(
            "tests/reprocessing/pipeline/replay/test_send_batches.py::test_body_and_attributes_of_every_type_arrive_unchanged"
        ),
    ),
    Bug(
        name="an-eleventh-attribute",
        breaks="Bytes are sacred: a letter with ten attributes gets another, and SQS refuses it.",
        file="reprocessing/domain/message/redrive_attributes.py",
        old="MOST_ATTRIBUTES = 10\n",
        new="MOST_ATTRIBUTES = 11\n",
        caught_by=(
            "tests/reprocessing/pipeline/replay/test_send_batches.py"
            "::test_the_letter_s_own_attributes_come_first_and_ten_are_the_limit"
        ),
    ),
    Bug(
        name="a-redrive-id-for-each-attempt",
        breaks="At least once, same key: a repeat carries another redrive id, and no consumer can know it.",
        file=_WRAP,
        old="        conf.marks, redrive_attributes.Mark(letter.public_id, letter.no),\n",
        new='        conf.marks, redrive_attributes.Mark(__import__("uuid").uuid4(), letter.no),\n',
        caught_by=(
            f"{_OF_TARGETS}::test_the_key_and_the_redrive_id_are_the_same_on_every_attempt_and_its_number_is_told"
        ),
    ),
    Bug(
        name="an-epoch-after-an-unknown-outcome",
        breaks="FIFO targets swallow the repeat: after a lost answer it goes under another deduplication id.",
        file="reprocessing/pipeline/replay/settle.py",
        old="        due=max(due, asked), detail=detail, known=known, counts_as_failure=counts_as_failure,\n",
        new="        due=max(due, asked), detail=detail, known=True, counts_as_failure=counts_as_failure,\n",
        caught_by=(
            f"{_OF_TARGETS}::test_a_fifo_queue_is_told_another_letter_only_when_the_first_is_known_to_have_failed"
        ),
    ),
    Bug(
        name="an-epoch-after-a-lost-worker",
        breaks="FIFO targets swallow the repeat: what a killed worker sent goes under another deduplication id.",
        file="reprocessing/store/ordering/orphaned_lanes.py",
        old="       SET state = CASE WHEN f.spent THEN 'parked' ELSE 'waiting' END, due_at = NULL,\n",
        new=(
            "       SET state = CASE WHEN f.spent THEN 'parked' ELSE 'waiting' END, due_at = NULL, epoch = "
            "l.epoch + 1,\n"
        ),
        caught_by=f"{_OF_REPLAY}::test_a_fifo_target_drops_the_repeat_of_a_killed_worker",
    ),
    Bug(
        name="one-deduplication-id-for-all-epochs",
        breaks="FIFO targets swallow repeats, not retries: a letter that was refused is sent, and swallowed.",
        file="reprocessing/domain/message/identity.py",
        old='hashlib.sha256(f"{public_id}:{epoch}".encode())',
        new='hashlib.sha256(f"{public_id}".encode())',
        caught_by=(
            "tests/reprocessing/domain/message/test_identity.py"
            "::test_a_deduplication_id_changes_with_the_epoch_and_with_nothing_else"
        ),
    ),
    Bug(
        name="counted-when-settled",
        breaks="At most N counted attempts, crashes included: what a killed worker sent was never counted.",
        file="reprocessing/store/ordering/orphaned_lanes.py",
        old="       SET state = CASE WHEN f.spent THEN 'parked' ELSE 'waiting' END, due_at = NULL,\n",
        new=(
            "       SET state = CASE WHEN f.spent THEN 'parked' ELSE 'waiting' END, due_at = NULL,\n"
            "           attempts = l.attempts - 1, not_sent = l.not_sent + 1,\n"
        ),
        caught_by=f"{_OF_REPLAY}::test_a_letter_that_kills_its_workers_is_parked_after_its_attempts",
    ),
    Bug(
        name="not-counted-at-intent",
        breaks="At most N counted attempts, counted before the send: the intent counts nothing.",
        file=_INTENT,
        old="SET state = 'sending', attempts = l.attempts + 1, due_at = NULL,",
        new="SET state = 'sending', attempts = l.attempts, not_sent = l.not_sent + 1, due_at = NULL,",
        caught_by=f"{_OF_REPLAY}::test_a_letter_that_kills_its_workers_is_parked_after_its_attempts",
    ),
    Bug(
        name="spent-attempts-are-not-asked-for",
        breaks="At most N counted attempts: the gate lets a letter go that has none left.",
        file="reprocessing/pipeline/replay/gate.py",
        old="    return (standing.attempts or 0) >= (standing.max_attempts or 1)\n",
        new="    return (standing.attempts or 0) > (standing.max_attempts or 1)\n",
        caught_by="tests/reprocessing/pipeline/replay/test_gate.py::test_the_verdict_over_a_head",
    ),
    Bug(
        name="a-claim-that-is-complete-before-the-send",
        breaks="No loss: twins are closed as duplicates of a letter that was never delivered.",
        file=_INTENT,
        old="           sha256(convert_to(idempotency_key, 'UTF8')), id, 'held', body_hash,\n",
        new="           sha256(convert_to(idempotency_key, 'UTF8')), id, 'delivered', body_hash,\n",
        caught_by="tests/reprocessing/pipeline/replay/test_gate.py::test_a_twin_waits_while_its_key_is_being_sent",
    ),
    Bug(
        name="a-claim-that-a-lost-answer-frees",
        breaks="At least once, same key: a twin goes while the target perhaps has the letter.",
        file="reprocessing/pipeline/replay/settle.py",
        old='LetterState.WAITING, "free" if known else "held",\n',
        new='LetterState.WAITING, "free",\n',
        caught_by=(
            f"{_OF_TARGETS}"
            "::test_after_an_answer_that_is_lost_the_claim_is_held_and_the_next_attempt_is_the_same_letter"
        ),
    ),
    Bug(
        name="another-letter-s-claim-is-won",
        breaks="Without a fault no duplicates: a key that another letter holds, or has used, is taken from it.",
        file=_INTENT,
        old="     WHERE c.state = 'free' OR c.letter_id = excluded.letter_id\n",
        new="     WHERE true OR c.letter_id = excluded.letter_id\n",
        caught_by=f"{_OF_CLAIMS}::test_a_key_of_another_letter_is_won_only_when_it_is_free",
    ),
    Bug(
        name="equal-keys-stall-the-batch",
        breaks="Nothing poison stops the pump: two equal keys of one batch fail it, again and again.",
        file=_INTENT,
        old="    SELECT DISTINCT ON (target_id, dlq_id, idempotency_key) target_id, dlq_id::text,\n",
        new="    SELECT target_id, dlq_id::text,\n",
        caught_by=f"{_OF_CLAIMS}::test_of_one_batch_one_wins_the_key",
    ),
    Bug(
        name="sent-without-its-key",
        breaks="Without a fault no duplicates: a letter whose key is another's goes all the same.",
        file=_INTENT,
        old=(
            "     WHERE idempotency_key IS NULL OR EXISTS (SELECT FROM claimed WHERE claimed.letter_id = admitted.id)\n"
        ),
        new="     WHERE true OR EXISTS (SELECT FROM claimed WHERE claimed.letter_id = admitted.id)\n",
        caught_by=f"{_OF_CLAIMS}::test_of_several_workers_one_wins_the_key",
    ),
    Bug(
        name="a-body-that-is-no-text-stops-its-batch",
        breaks="Nothing poison stops the pump: a body that SQS cannot carry raises in the middle of a batch.",
        file="reprocessing/gateways/sqs/batches.py",
        old="    except UnicodeDecodeError:\n        return Refused(",
        new="    except LookupError:\n        return Refused(",
        caught_by=(
            "tests/reprocessing/gateways/sqs/test_sending_kinds.py"
            "::test_a_poison_letter_is_refused_for_good_and_its_batch_mates_are_taken"
        ),
    ),
    Bug(
        name="a-poison-letter-fails-its-batch",
        breaks="Nothing poison stops the pump: what SQS refuses whole is not sent again in halves.",
        file="reprocessing/gateways/sqs/batch_requests.py",
        old="            if is_of_an_entry(error) and len(load) > 1:\n",
        new="            if is_of_an_entry(error) and not load:\n",
        caught_by=f"{_OF_SENDING}::test_a_batch_refused_for_one_letter_is_halved_until_that_letter_stands_alone",
    ),
    Bug(
        name="a-body-that-cannot-be-read-raises",
        breaks="Nothing poison stops the pump: a body that is not JSON raises where its key is read.",
        file="reprocessing/domain/message/json_view.py",
        old="    except (ValueError, InvalidOperation) as error:\n        is_json",
        new="    except InvalidOperation as error:\n        is_json",
        caught_by=(
            "tests/reprocessing/pipeline/capture/test_capture.py::test_unreadable_bodies_are_parked_and_the_others_go_on"
        ),
    ),
    Bug(
        name="a-key-is-held-behind-its-own-twin",
        breaks="No letter waits for ever: what waits behind its twin keeps the key that the twin waits for.",
        file="reprocessing/store/ordering/lanes.py",
        old="           CASE WHEN {LAPSED} THEN 'free' ELSE c.state END AS claim_state, c.letter_id AS claim_letter,\n",
        new="           c.state AS claim_state, c.letter_id AS claim_letter,\n",
        caught_by=f"{_OF_AN_UNKNOWN_END}::test_an_earlier_twin_gets_the_key_when_no_copy_can_come_back",
    ),
    Bug(
        name="a-key-lapses-while-a-copy-may-come-back",
        breaks="No double: a twin goes while the letter that holds its key may lie in the target.",
        file="reprocessing/store/replay/settlement_effects.py",
        old=" AND {COPY_ENDS} > redrive_now()))))\n",
        new=" AND a.deadline > redrive_now()))))\n",
        caught_by=f"{_OF_AN_UNKNOWN_END}::test_an_earlier_twin_gets_the_key_when_no_copy_can_come_back",
    ),
    Bug(
        name="a-key-lapses-while-its-letter-is-a-head",
        breaks="Nothing is sent beside itself: a twin takes the key of a letter that is to be sent again.",
        file="reprocessing/store/replay/settlement_effects.py",
        old=" AND c.letter_id IS DISTINCT FROM (\n",
        new=" AND 0 IS DISTINCT FROM (\n",
        caught_by=f"{_OF_AN_UNKNOWN_END}::test_a_letter_at_the_head_of_its_own_lane_keeps_its_key",
    ),
)
