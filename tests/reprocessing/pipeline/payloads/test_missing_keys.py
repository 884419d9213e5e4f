"""A process whose payload keys are missing or wrong receives no message, and stores nothing readable."""

from __future__ import annotations

from unittest import mock

import pytest
from django.test import Client

from reprocessing import tasks
from reprocessing.domain.errors import PayloadKeyUnavailable
from reprocessing.domain.message.redrive_attributes import MarkNames
from reprocessing.domain.outcomes.consumer_report import ConsumerReport
from reprocessing.domain.payloads import sealing
from reprocessing.domain.payloads.sealing import Part
from reprocessing.models import DeadLetterQueue, Letter, Payload, PayloadKey, Report, Revision
from reprocessing.pipeline.outcomes import record_reports
from reprocessing.pipeline.parking_lot import edit
from reprocessing.pipeline.parking_lot.edit import Alteration, SeenLetter
from reprocessing.store import rows
from reprocessing.store.outcomes import reporters
from reprocessing.store.parking_lot import message_edits
from reprocessing.store.payloads import content, payload_keys
from tests.reprocessing.payload_rings import NEW, OLD, WRONG_OLD, Rings
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("encrypted")]

UNSET = "REDRIVE_PAYLOAD_KEYS is not set for this process, but payloads are encrypted with the key old"
WRONG = "The payload key old does not fit"


def _captured(body: str = "1", *, fifo: bool = False) -> Workbench:
    bench = Workbench(fifo=fifo)
    bench.bury(body)
    bench.capture()
    return bench


@pytest.mark.parametrize(("keys", "why"), [((), UNSET), ((WRONG_OLD,), WRONG)], ids=["no key", "a wrong key"])
@pytest.mark.parametrize("fifo", [False, True], ids=["standard", "FIFO"])
def test_a_capture_refuses_before_it_receives(rings: Rings, keys: tuple[str, ...], why: str, fifo: bool) -> None:
    bench = _captured(fifo=fifo)
    bench.bury("2")
    rings(*keys)
    with pytest.raises(PayloadKeyUnavailable, match=why):
        bench.capture()
    rings(OLD)
    assert bench.capture().captured.letters == 1  # the message is visible: nobody received it
    assert {sealing.key_id(bytes(body)) is not None for body in Payload.objects.values_list("body", flat=True)} == {
        True
    }


def test_a_process_without_keys_captures_where_nothing_is_encrypted(rings: Rings) -> None:
    rings()
    bench = _captured("readable")
    assert (bytes(Payload.objects.get().body), bench.left() > 0) == (b"readable", True)


def test_a_process_without_keys_notices_that_encryption_began(rings: Rings, monkeypatch: pytest.MonkeyPatch) -> None:
    rings()
    bench = _captured()
    place = (bench.dlq.pk, None)
    PayloadKey.objects.create(dlq=bench.dlq, wrapped=b"by another process", wrapped_by="old")
    assert payload_keys.current_key(place) is None  # asked a moment ago
    monkeypatch.setattr(payload_keys, "_LOOK_AGAIN", 0.0)
    rings()
    with pytest.raises(PayloadKeyUnavailable, match=UNSET):
        payload_keys.current_key(place)


def test_a_process_without_keys_asks_once_and_not_for_each_message(rings: Rings) -> None:
    rings()
    bench = Workbench()
    bench.bury_all(*map(str, range(12)))
    with mock.patch.object(rows, "column", wraps=rows.column) as asked:
        bench.capture()
    said = [call.args[1] for call in asked.call_args_list]
    assert (Letter.objects.count(), said.count(payload_keys._NEWEST_NAME)) == (12, 1)


def test_where_all_data_keys_were_destroyed_a_process_without_keys_captures_again(rings: Rings) -> None:
    bench = Workbench()
    PayloadKey.objects.create(
        dlq=bench.dlq, wrapped=None, wrapped_by="old", destroyed_at="2026-03-01T00:00Z", destroyed_by="ann",
        destroy_reason="all left",
    )  # fmt: skip
    rings()
    bench.bury("readable")
    assert bench.capture().captured.letters == 1


def test_a_wrong_first_key_wraps_no_new_data_key(rings: Rings) -> None:
    bench = _captured()
    rings(NEW, OLD)
    other = _captured()
    known = PayloadKey.objects.count()
    wrong_new = NEW.partition("=")[0] + "=" + WRONG_OLD.partition("=")[2]
    rings(wrong_new, OLD)
    third = Workbench()
    third.bury("3")
    with pytest.raises(PayloadKeyUnavailable, match="The payload key new does not fit"):
        third.capture()
    assert (PayloadKey.objects.count(), bench.dlq.pk < other.dlq.pk) == (known, True)


def test_the_task_says_at_the_dlq_why_nothing_is_captured(rings: Rings) -> None:
    bench = _captured()
    DeadLetterQueue.objects.update(mode="automatic")
    bench.bury("2")
    rings()
    tasks.capture(bench.dlq.pk)
    assert DeadLetterQueue.objects.get().last_error.startswith(UNSET)
    assert Letter.objects.count() == 1


def test_an_edit_is_refused_and_not_stored_readable(rings: Rings) -> None:
    bench = Workbench()
    with bench.refusing("1", poison=True):
        bench.redrive("1")
    letter = bench.letter(state="parked")
    stand = message_edits.read_letter(letter.pk)
    assert stand is not None
    assert stand.finished_at is not None
    rings()
    with pytest.raises(PayloadKeyUnavailable):
        edit.edit_letter(
            letter.pk, SeenLetter(stand.finished_at, stand.revision), Alteration(b"canary", {}), names=MarkNames(),
            by="ann", reason="a typo", replay=True,
        )  # fmt: skip
    assert Revision.objects.count() == 0


def test_a_report_is_refused_and_not_stored_readable(rings: Rings) -> None:
    bench = Workbench()
    bench.redrive("1")
    said = ConsumerReport(verdict="failed", public_id=bench.letter().public_id, type="E", message="canary")
    rings()
    with pytest.raises(PayloadKeyUnavailable, match=UNSET):
        record_reports.record_parsed([said], reporter=None, dice=lambda: 0.0)
    with pytest.raises(PayloadKeyUnavailable, match=UNSET):
        content.sealed_text("canary", Part.REPORT)
    assert Report.objects.count() == 0


def test_a_consumer_is_told_to_report_again(rings: Rings, client: Client) -> None:
    bench = Workbench()
    bench.redrive("1")
    token = reporters.save_reporter("shop", [bench.target], anew=False, by="ann", reason="a test").token
    said = {"reports": [{"message_id": "1", "verdict": "delivered", "at": "2026-03-01T08:00:00Z"}]}
    rings()
    answer = client.post("/reports", said, "application/json", headers={"Authorization": f"Bearer {token}"})
    assert (answer.status_code, answer.headers["Retry-After"], Report.objects.count()) == (503, "5", 0)
    assert "payload keys are not available" in answer.json()["error"]
