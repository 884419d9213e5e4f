"""What people make of letters, and that they look at them."""

from __future__ import annotations

from tests.proof.planted.bug import quoted

BUGS = quoted("""
@reprocessing/admin/messages/edit.py
@tests/reprocessing/admin/messages/test_edit.py
an-edit-is-confirmed-by-anybody: test_a_page_of_somebody_else_is_no_page
-    return found if (found["letter"], found["user"]) == (letter.pk, request.user.pk) else None
+    return found

@reprocessing/admin/messages/messages.py
@tests/reprocessing/admin/messages/test_message_page.py
whoever-sees-a-letter-sees-its-payload: test_who_may_not_see_payloads_is_told_so_and_refused
-        if not (self.has_view_permission(request) and message_page.may_see_payloads(request.user)):
+        if not self.has_view_permission(request):

@reprocessing/admin/messages/show_payload.py
a-look-leaves-no-trace: test_a_payload_is_covered_until_somebody_who_may_see_it_asks_for_it
-        _record(letter, by, why, revision.no if revision else 0)
+

@reprocessing/pipeline/parking_lot/edit.py
@tests/reprocessing/pipeline/parking_lot/test_edit.py
whatever-is-parked-is-edited: test_of_two_who_saw_the_same_letter_one_edits_it_and_the_other_is_told
-== (LetterState.PARKED, seen.finished_at, seen.revision)
+== (LetterState.PARKED, seen.finished_at, stand.revision)

@reprocessing/store/capture/received_copies.py
what-was-sent-before-an-edit-is-a-stranger: test_copies_of_what_was_sent_before_and_after_the_edit_are_both_known
-s.body_hash IN (v.body_hash, v.previous_body_hash)
+s.body_hash IN (v.body_hash)

@reprocessing/store/parking_lot/message_edits.py
an-edited-letter-goes-where-it-would-have-gone: test_rules_are_asked_about_what_will_be_sent
-CASE WHEN l.rulebook_version < {BY_HAND} THEN 0 ELSE l.rulebook_version END
+l.rulebook_version
an-edit-keeps-its-epoch: test_a_fifo_queue_takes_what_was_edited_though_it_may_have_had_the_letter_before
-epoch = l.epoch + 1,
+epoch = l.epoch,

@reprocessing/store/replay/intent.py
an-edit-is-not-what-is-sent: test_what_was_written_is_sent_byte_for_byte_and_what_was_captured_stays
-coalesce(v.body, p.body) AS body
+p.body

@reprocessing/store/routing/routing_decisions.py
rules-read-what-was-captured: test_rules_are_asked_about_what_will_be_sent
-            THEN coalesce(v.body, p.body) ELSE ''::bytea END AS body
+            THEN p.body ELSE ''::bytea END AS body
""")
