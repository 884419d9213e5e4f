"""What people make of letters, and that they look at them."""

from __future__ import annotations

from typing import Final

from tests.proof.planted.bug import Bug

_OF_EDIT: Final = "tests/reprocessing/pipeline/parking_lot/test_edit.py"
_OF_PAGE: Final = "tests/reprocessing/admin/messages/test_message_page.py"

BUGS: Final = (
    Bug(
        name="an-edit-is-not-what-is-sent",
        breaks="What a person made of a letter goes in the place of what was captured.",
        file="reprocessing/store/replay/intent.py",
        old="coalesce(v.body, p.body) AS body",
        new="p.body",
        caught_by=f"{_OF_EDIT}::test_what_was_written_is_sent_byte_for_byte_and_what_was_captured_stays",
    ),
    Bug(
        name="rules-read-what-was-captured",
        breaks="Rules are asked about what will be sent.",
        file="reprocessing/store/routing/routing_decisions.py",
        old="            THEN coalesce(v.body, p.body) ELSE ''::bytea END AS body\n",
        new="            THEN p.body ELSE ''::bytea END AS body\n",
        caught_by=f"{_OF_EDIT}::test_rules_are_asked_about_what_will_be_sent",
    ),
    Bug(
        name="an-edited-letter-goes-where-it-would-have-gone",
        breaks="Rules are asked anew about a letter that is another now.",
        file="reprocessing/store/parking_lot/message_edits.py",
        old="CASE WHEN l.rulebook_version < {BY_HAND} THEN 0 ELSE l.rulebook_version END",
        new="l.rulebook_version",
        caught_by=f"{_OF_EDIT}::test_rules_are_asked_about_what_will_be_sent",
    ),
    Bug(
        name="what-was-sent-before-an-edit-is-a-stranger",
        breaks="Copies of every version of a letter are known when they come back.",
        file="reprocessing/store/capture/received_copies.py",
        old="s.body_hash IN (v.body_hash, v.previous_body_hash)",
        new="s.body_hash IN (v.body_hash)",
        caught_by=f"{_OF_EDIT}::test_copies_of_what_was_sent_before_and_after_the_edit_are_both_known",
    ),
    Bug(
        name="an-edit-keeps-its-epoch",
        breaks="A FIFO target swallows an edit for what it may have had before: lost, and called delivered.",
        file="reprocessing/store/parking_lot/message_edits.py",
        old="epoch = l.epoch + 1,\n",
        new="epoch = l.epoch,\n",
        caught_by=f"{_OF_EDIT}::test_a_fifo_queue_takes_what_was_edited_though_it_may_have_had_the_letter_before",
    ),
    Bug(
        name="whatever-is-parked-is-edited",
        breaks="Of two who edit the same letter one undoes what the other did, and neither is told.",
        file="reprocessing/pipeline/parking_lot/edit.py",
        old="== (LetterState.PARKED, seen.finished_at, seen.revision)",
        new="== (LetterState.PARKED, seen.finished_at, stand.revision)",
        caught_by=f"{_OF_EDIT}::test_of_two_who_saw_the_same_letter_one_edits_it_and_the_other_is_told",
    ),
    Bug(
        name="a-look-leaves-no-trace",
        breaks="Who looked at a payload is recorded in the transaction that reads it.",
        file="reprocessing/admin/messages/show_payload.py",
        old="        _record(letter, by, why, revision.no if revision else 0)\n",
        new="",
        caught_by=f"{_OF_PAGE}::test_a_payload_is_covered_until_somebody_who_may_see_it_asks_for_it",
    ),
    Bug(
        name="whoever-sees-a-letter-sees-its-payload",
        breaks="Payloads are for those who may see them.",
        file="reprocessing/admin/messages/messages.py",
        old="        if not (self.has_view_permission(request) and message_page.may_see_payloads(request.user)):\n",
        new="        if not self.has_view_permission(request):\n",
        caught_by=f"{_OF_PAGE}::test_who_may_not_see_payloads_is_told_so_and_refused",
    ),
    Bug(
        name="an-edit-is-confirmed-by-anybody",
        breaks="What one person wrote another confirms under their own name.",
        file="reprocessing/admin/messages/edit.py",
        old='    return found if (found["letter"], found["user"]) == (letter.pk, request.user.pk) else None\n',
        new="    return found\n",
        caught_by="tests/reprocessing/admin/messages/test_edit.py::test_a_page_of_somebody_else_is_no_page",
    ),
)
