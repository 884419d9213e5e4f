"""Messages with a canary are captured, sent, parked, edited, searched and reported. Then every file is searched."""

from __future__ import annotations

import base64
import json
import logging
import uuid
from dataclasses import replace
from pathlib import Path

import pytest
import redis
from django.conf import settings
from django.db import connection

from reprocessing.domain.message.envelope import unpack_attributes
from reprocessing.domain.message.redrive_attributes import MarkNames
from reprocessing.domain.outcomes.consumer_report import ConsumerReport
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.domain.safety.url_policy import AllowList, allow_list
from reprocessing.models import BulkAction, Letter, Target
from reprocessing.models.parking_lot import BulkActionKind
from reprocessing.pipeline.outcomes import record_reports
from reprocessing.pipeline.parking_lot import act_on_parked, edit, group_failures, run_bulk_actions
from reprocessing.pipeline.parking_lot.edit import Alteration, Edited, SeenLetter
from reprocessing.pipeline.replay import late_answers, slow_targets
from reprocessing.store.parking_lot import bulk_actions, filtered_letters, message_edits
from reprocessing.store.payloads import payload_keys
from tests.reprocessing.payload_rings import OLD, Rings
from tests.reprocessing.pipeline.bench import BRISK, Workbench
from tests.reprocessing.web_servers import answering, serving

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak]


def _work(canary: str) -> None:
    bench = Workbench()
    bodies = [json.dumps({"note": canary, "n": n}) for n in range(3)]
    bench.redrive(*bodies[:2], note=canary)
    with bench.refusing(bodies[2], poison=True, quoting=f"Value {canary} is invalid"):
        bench.redrive(bodies[2], note=canary)
    letter = bench.letter(state="parked")
    _refuse_by_http(canary)
    group_failures.assign_groups(batches=5)
    assert filtered_letters.count_letters(MessageFilter(text=canary)) == 2
    bulk_actions.create(uuid.uuid4(), BulkActionKind.NOTE, MessageFilter(text=canary), {}, by="ann", reason="looked at")
    run_bulk_actions.run_bulk_action(BulkAction.objects.get().pk, seconds=5)
    said = ConsumerReport(verdict="failed", public_id=letter.public_id, type="Error", message=f"no such {canary}")
    record_reports.record_parsed([said], reporter=None, dice=lambda: 0.0)
    _edit(letter, json.dumps({"note": canary, "edited": True}).encode())
    act_on_parked.release([letter.pk], by="ann", reason="fixed")
    bench.replay()
    assert len([body for body in bench.delivered_bodies() if canary in body]) == 3
    assert Letter.objects.filter(dlq=bench.dlq, state="delivered").count() == 3


def _refuse_by_http(canary: str) -> None:
    """Let an endpoint refuse a message with the canary, and quote it wherever an answer can."""
    heads = f"HTTP/1.1 400 {canary}\r\nX-Why: {canary}\r\nContent-Length: {len(canary)}\r\n\r\n"
    with serving(answering(f"{heads}{canary}".encode())) as server:
        hosts = allow_list([f"127.0.0.1:{server.port}"])
        assert isinstance(hosts, AllowList)
        bench = Workbench(conf=replace(BRISK, outbound_hosts=hosts))
        Target.objects.filter(pk=bench.target.pk).update(kind="http", url=f"http://127.0.0.1:{server.port}/")
        bench.redrive(canary)
        assert late_answers.wait_for_all(10)
        slow_targets.forget_streams()
    assert bench.letter(state="parked").detail == "400: it answered 400"


def _edit(letter: Letter, body: bytes) -> None:
    stand = message_edits.read_letter(letter.pk)
    assert stand is not None
    assert stand.finished_at is not None
    to = Alteration(body, unpack_attributes(stand.attributes))
    seen = SeenLetter(stand.finished_at, stand.revision)
    done = edit.edit_letter(letter.pk, seen, to, names=MarkNames(), by="ann", reason="a typo", replay=False)
    assert isinstance(done, Edited)


def _files() -> list[Path]:
    """Write everything to files; return those of PostgreSQL, with its write-ahead log, and of Redis."""
    with connection.cursor() as cursor:
        cursor.execute("CHECKPOINT")
        cursor.execute("SHOW data_directory")
        directory = Path(cursor.fetchone()[0])
    store = redis.Redis.from_url(settings.REDIS_URL)
    store.save()
    dump = Path(*(str(store.config_get(name)[name]) for name in ("dir", "dbfilename")))
    store.close()
    return [*(path for path in directory.rglob("*") if path.is_file()), dump]


def _places(*texts: bytes) -> set[str]:
    """Return the names of the folders with a file that contains one of these texts."""
    return {path.parent.name for path in _files() if any(text in _content(path) for text in texts)}


def _content(path: Path) -> bytes:
    """PostgreSQL deletes caches and temporary files of other tests' databases meanwhile; tables and WAL stay."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def test_no_file_has_a_readable_payload_with_encryption(rings: Rings, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    canary = f"canary{uuid.uuid4().hex}"
    rings(OLD)
    _work(canary)
    secret = base64.b64decode(OLD.partition("=")[2])
    data_keys = [key.secret for key, _ in payload_keys._unwrapped._keys.values()]
    assert data_keys
    encoded = base64.b64encode(canary.encode())
    assert _places(canary.encode(), encoded[:-4], secret, *data_keys) == set()
    assert canary not in caplog.text


def test_the_same_search_finds_a_readable_payload_without_encryption(rings: Rings) -> None:
    canary = f"canary{uuid.uuid4().hex}"
    rings()
    _work(canary)
    found = _places(canary.encode())
    assert "pg_wal" in found
    assert len(found) > 1  # the folder of the database, too
