from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from celery.app.task import Task
from django.db import connection

from reprocessing import tasks
from reprocessing.domain.verdict import Outcome, Refused
from reprocessing.models import Breaker, Custody, DeadLetter, Run, Wave, breakers
from reprocessing.models.intent import Intended
from reprocessing.pipeline import deliver, recover
from tests.reprocessing.pipeline.bench import BRISK, Workbench
from tests.reprocessing.store import seeded_letters as sl
from tests.reprocessing.store.explained import explained
from tests.stories.scene import lettered, published

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak, pytest.mark.timeout(900)]

AT_A_TIME = 60


def a_turn(bench: Workbench, no: int):
    """What the service does with some letters: captured, sent, come back, failed, presumed delivered, swept."""
    keys = [f"{no}-{n // 2}" for n in range(AT_A_TIME)]
    published(bench.sqs, bench.dlq_url, (lettered(f"{no}-{n}", key=keys[n], n=f"{n}") for n in range(AT_A_TIME)))
    bench.capture()
    again = [c for c in Custody.objects.filter(dlq=bench.dlq, state="held").exclude(handle="none")[:10]]
    for copy in again:
        bench.sqs.change_message_visibility(QueueUrl=bench.dlq_url, ReceiptHandle=copy.handle, VisibilityTimeout=0)
    tasks.tick()
    bench.replay(seconds=20)
    sent = bench.delivered()
    print("sent", len(sent))
    for one in sent[:10]:
        bench.come_back(one)
    bench.capture()
    bench.promote()
    bench.capture()
    bench.promote()
    with failing(AT_A_TIME // 2):
        bench.replay(seconds=20)
    tasks.tick()
    Breaker.objects.filter(target=bench.target).update(retry_at=None, state="half_open", canary_until=None)
    bench.replay(seconds=3)
    Breaker.objects.filter(target=bench.target).update(state="closed", retry_at=None, canary_until=None, failing_since=None)
    bench.delivered()
    recover.dlqs(conf=bench.conf)
    Wave.objects.filter(settled_at=None).update(size=None)
    for _ in range(2):
        bench.capture()
        bench.promote()


from contextlib import contextmanager
@contextmanager
def failing(most):
    post = deliver.letters
    left = [most]
    def refuse(intended: Sequence[Intended], *rest: Any, **options: Any):
        some = intended[:left[0]]
        left[0] -= len(some)
        out = {one.attempt_id: Refused("Busy", "not now") for one in some}
        others = [one for one in intended if one.attempt_id not in out]
        return out | (post(others, *rest, **options) if others else {})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deliver, "letters", refuse)
        yield


def tell(what, found):
    by = defaultdict(list)
    for e in found:
        by[e.name, e.text[:70]].append(e)
    print("=====", what)
    for (name, text), es in sorted(by.items(), key=lambda kv: -max(e.buffers_a_letter for e in kv[1])):
        worst = max(es, key=lambda e: e.buffers_a_letter)
        print(f"{worst.buffers_a_letter:9.1f} {worst.buffers:8} {worst.asked:5} x{len(es):4} {name:60} {set().union(*[e.scanned for e in es]) or ''} {text[:40]}")


def test_explore(monkeypatch):
    monkeypatch.setattr(Task, "apply_async", lambda *_, **__: None)
    N = int(os.environ.get("N", "5000"))
    with sl.nothing_is_vacuumed():
        bench = Workbench(conf=replace(BRISK, max_unsettled=AT_A_TIME), fields={"mode": "automatic", "waves": True, "ordering_key": "attribute:key", "sequence": "attribute:n", "idempotency_key": "attribute:n"})
        bench.judge_by_absence(window=0)
        run = sl.standing_run(bench)
        t = time.time()
        sl.without_statistics()
        sl.seed(bench, run, 1, N)
        print("seed", time.time() - t)
        t = time.time()
        with explained() as found:
            a_turn(bench, 1)
        tell("without", found)
        print("took", time.time() - t)
        sl.with_statistics()
        with explained() as found:
            a_turn(bench, 2)
        tell("with", found)
