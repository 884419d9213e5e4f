"""A target that never comes back, then workers that die: a person gets one text of each, and no word of a message."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from django_celery_beat.models import IntervalSchedule

from reprocessing.models import Breaker, DeadLetterQueue, Incident, Letter, Notification, NotificationRoute, Run, Target
from tests.conditions import eventually
from tests.faults.fleet import Worker
from tests.reprocessing.gateways.stand_ins import Asked, Said, standing_in
from tests.reprocessing.pipeline.bench import Workbench
from tests.stories.scene import beat_process

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak, pytest.mark.long, pytest.mark.timeout(400)]

CANARY = "c4n4ry"
LETTERS = 120
#: Each kind goes to a destination of its own: two texts to one destination are a minute apart.
KINDS = ("breaker_open", "run_stopped", "workers_silent")


@dataclass
class Receiver:
    """A local web server: the target that answers 503 with a customer's words, and the webhooks of people."""

    texts: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    refused: int = 0
    address: str = ""

    def answer(self, asked: Asked) -> Said:
        if asked.path == "/target":
            self.refused += 1
            return Said(503, f"{CANARY} in an answer".encode())
        self.texts.setdefault(asked.path.strip("/"), []).append(json.loads(asked.body))
        return Said(200, b"")

    def settings(self) -> dict[str, str]:
        """What the environment of beat and worker says of it."""
        secret = "whsec_" + base64.b64encode(b"k" * 32).decode()
        urls = {
            f"REDRIVE_NOTIFY_{kind.upper()}": f"webhook+http://{self.address}/{kind}#secret=people" for kind in KINDS
        }
        return {
            "REDRIVE_OUTBOUND_HOSTS": self.address, "REDRIVE_SECRETS": f"people={secret}",
            "REDRIVE_ALERT_SILENT_FOR": "30", "REDRIVE_DOCTOR_EVERY": "0", **urls,
        }  # fmt: skip


def dead_letters(receiver: Receiver) -> Workbench:
    """Messages that carry customers' words wherever they can, in a DLQ that is redriven by itself."""
    bench = Workbench(fields={
        "ordering_key": "attribute:key", "waves": True, "give_up_after": 5, "max_attempts": 2, "backoff_base": 1,
        "backoff_cap": 1,
    })  # fmt: skip
    Target.objects.filter(pk=bench.target.pk).update(kind="http", url=f"http://{receiver.address}/target")
    Breaker.objects.update(cooldown=1, cooldown_cap=1)
    for number in range(LETTERS):
        bench.bury(
            json.dumps({"name": f"{CANARY} in a body"}), key=f"{CANARY}-key-{number % 40}", note=f"{CANARY}-value"
        )
    every, _ = IntervalSchedule.objects.get_or_create(every=1, period="seconds")
    DeadLetterQueue.objects.update(mode="automatic", interval=every, next_poll_at=None)
    for kind in KINDS:
        NotificationRoute.objects.create(destination=kind.replace("_", "-"), kinds=[kind])
    return bench


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    with standing_in(made.answer) as server:
        made.address = server.url.removeprefix("http://")
        yield made


def test_each_incident_is_one_text_and_says_nothing_of_a_message(receiver: Receiver, tmp_path: Path) -> None:
    dead_letters(receiver)
    more = receiver.settings()
    with ExitStack() as stack:
        stack.enter_context(beat_process(tmp_path, **more))
        with Worker(tmp_path, "worker", concurrency=2, **more):
            eventually(lambda: Run.objects.filter(state="paused").exists(), within=120, every=0.5)
            eventually(lambda: _told() == {"breaker_open", "run_stopped"}, within=60, every=0.5)
        eventually(lambda: _told() == set(KINDS), within=120, every=0.5)
    assert Run.objects.get().stopped_by == "the service"
    assert Letter.objects.filter(state="parked").count() == 0
    told = {kind: list(Incident.objects.filter(kind=kind)) for kind in KINDS}
    assert {kind: len(incidents) for kind, incidents in told.items()} == dict.fromkeys(KINDS, 1)
    assert {*Incident.objects.values_list("kind", flat=True)} <= {*KINDS, "failure_group_new"}
    assert {kind: len(texts) for kind, texts in receiver.texts.items()} == dict.fromkeys(KINDS, 1)
    assert receiver.refused > 1
    _says_nothing_of_a_message(receiver, tmp_path)


def _told() -> set[str]:
    sent = Notification.objects.filter(phase="opened", sent_at__isnull=False)
    return set(sent.values_list("incident__kind", flat=True))


def _says_nothing_of_a_message(receiver: Receiver, folder: Path) -> None:
    said = {
        "texts": json.dumps(receiver.texts),
        "incidents": json.dumps(list(Incident.objects.values_list("subject", "facts"))),
        "routes": json.dumps(list(NotificationRoute.objects.values_list("last_error", flat=True))),
        **{log.name: log.read_text(encoding="utf-8", errors="replace") for log in folder.glob("*.log")},
    }
    assert [place for place, text in said.items() if CANARY in text] == []
    assert {"beat.log", "worker.log"} <= said.keys()
