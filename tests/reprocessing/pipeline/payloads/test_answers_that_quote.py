"""A target's text that may quote the payload is stored like a payload, and a person sees it with the payload."""

from __future__ import annotations

from datetime import date

import pytest

from reprocessing.domain.errors import PayloadKeyUnavailable
from reprocessing.models import Attempt, DeadLetterQueue, FailureGroup, Letter
from reprocessing.pipeline.parking_lot import group_failures
from reprocessing.pipeline.payloads import rotate, shred
from reprocessing.store.payloads import answer_texts, content
from tests.reprocessing.admin.parking_lot.parked_messages import LOOKS, person, revealed
from tests.reprocessing.payload_rings import OLD, Rings
from tests.reprocessing.pipeline.bench import enqueued

pytestmark = pytest.mark.django_db(transaction=True)
SAID = "Value canary for attribute note is invalid"
HIDDEN = f"Busy: {answer_texts.HIDDEN}"


def refused() -> Letter:
    """A message that its target refused, with a text that quotes it."""
    bench = enqueued('{"note": "canary"}')
    with bench.refusing('{"note": "canary"}', poison=True, quoting=SAID):
        bench.replay()
    return bench.letter(state="parked")


def details(letter: Letter) -> set[str]:
    letter.refresh_from_db()
    return {letter.detail, str(Attempt.objects.get(letter=letter).detail)}


def told(letter: Letter, *, shown: bool = True, is_revealed: bool = False) -> str:
    letter.refresh_from_db()
    return answer_texts.detail_for(letter, letter.detail, shown=shown, revealed=is_revealed)


def test_with_encryption_only_the_code_is_readable(encrypted: Rings) -> None:
    letter = refused()
    (detail,) = details(letter)
    assert (detail.startswith("Busy: \x1a"), "canary" in detail) == (True, False)
    assert (told(letter, shown=False), told(letter)) == (HIDDEN, f"Busy: {SAID}")


def test_without_encryption_it_is_hidden_from_the_same_people(rings: Rings) -> None:
    rings()
    letter = refused()
    assert (told(letter, shown=False), told(letter)) == (HIDDEN, f"Busy: {SAID}")


def test_it_is_masked_whole_if_the_dlq_masks_fields(encrypted: Rings) -> None:
    letter = refused()
    DeadLetterQueue.objects.update(masked_fields=["email"])
    letter = Letter.objects.get(pk=letter.pk)
    assert (told(letter), told(letter, is_revealed=True)) == ("Busy: [masked]", f"Busy: {SAID}")


@pytest.mark.soak
def test_a_page_has_it_only_with_the_payload(encrypted: Rings) -> None:
    letter, ann = refused(), person("ann", *LOOKS, "view_payload")
    covered = ann.get(f"/admin/reprocessing/letter/{letter.pk}/change/").content.decode()
    assert (covered.count(HIDDEN), SAID in covered) == (2, False)
    assert revealed(ann, letter).count(f"Busy: {SAID}") == 2


def test_failure_groups_have_the_code_alone(rings: Rings) -> None:
    rings()
    refused()
    group_failures.assign_groups(batches=1)
    (title,) = FailureGroup.objects.values_list("title", flat=True)
    assert title == "The target refused it: Busy"


def test_the_outcome_is_recorded_if_the_text_cannot_be_sealed(
    encrypted: Rings, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = enqueued("canary")

    def unavailable(*_: object) -> None:
        raise PayloadKeyUnavailable("KMS does not answer.")

    with bench.refusing("canary", poison=True, quoting=SAID), monkeypatch.context() as patch:
        patch.setattr(content, "sealer_of", unavailable)
        bench.replay()
    assert told(bench.letter(state="parked")) == f"Busy: {answer_texts.NOT_KEPT}"


def test_shredding_removes_the_text_and_keeps_the_code(encrypted: Rings) -> None:
    letter = refused()
    shred.shred_messages([letter.pk], by="ann", reason="the customer left")
    assert details(letter) == {"Busy"}


def test_who_has_the_database_cannot_open_it_after_the_keys_are_destroyed(encrypted: Rings) -> None:
    letter = refused()
    before = Letter.objects.get(pk=letter.pk)
    shred.shred_dlq(letter.dlq, by="ann", reason="the customer left", on_progress=lambda _: None)
    assert "destroyed" in answer_texts.detail_for(before, before.detail, shown=True, revealed=True)


def test_a_text_that_was_stored_readable_is_sealed_by_a_rotation(rings: Rings) -> None:
    rings()
    letter = refused()
    rings(OLD)
    assert rotate.seal_readable(date(2026, 3, 1), lambda _: None).texts == 1
    assert "canary" not in "".join(details(letter))
    assert told(letter) == f"Busy: {SAID}"
    assert rotate.seal_readable(date(2026, 3, 1), lambda _: None).texts == 0
