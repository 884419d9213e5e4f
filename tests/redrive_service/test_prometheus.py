"""A real Prometheus scrapes the service, and has the right values; its own tool finds nothing to say of the text."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.test import Client
from pytest_django.fixtures import Settings
from pytest_django.live_server_helper import LiveServer

from redrive_service.sandbox.demo import Demo
from redrive_service.sandbox.servers.process import RunningServer, Server, free_port
from redrive_service.sandbox.stack import Stack
from tests.conditions import eventually
from tests.reprocessing.pipeline.bench import Workbench

PROMETHEUS, PROMTOOL = shutil.which("prometheus"), shutil.which("promtool")
TOKEN = "prometheus-" + "t" * 32

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not PROMETHEUS or not PROMTOOL, reason="there is no prometheus (apt-get install prometheus)"),
]


@pytest.fixture(autouse=True)
def token(settings: Settings) -> None:
    settings.METRICS_TOKEN = TOKEN


@pytest.fixture
def bench() -> Workbench:
    """Two letters delivered, one parked."""
    bench = Workbench(fields={"max_attempts": 1})
    for body in ("good", "better", "bad"):
        bench.bury(body)
    bench.ready()
    with bench.refusing("bad"):
        bench.replay()
    return bench


@pytest.fixture
def prometheus(live_server: LiveServer, tmp_path: Path) -> Iterator[str]:
    """Its address; it scrapes the live server."""
    with scraping(live_server.url, tmp_path) as address:
        yield address


@contextmanager
def scraping(service: str, tmp_path: Path) -> Iterator[str]:
    """The address of a Prometheus that scrapes a service every five seconds."""
    address = f"127.0.0.1:{free_port()}"
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "prometheus.yml").write_text(
        json.dumps(
            {
                "global": {"scrape_interval": "5s", "scrape_timeout": "5s"},
                "scrape_configs": [
                    {
                        "job_name": "redrive",
                        "authorization": {"credentials_file": str(tmp_path / "token")},
                        "static_configs": [{"targets": [service.removeprefix("http://")]}],
                    }
                ],
            }
        )
    )
    server = RunningServer(
        Server(
            name="prometheus",
            command=[
                str(PROMETHEUS), f"--config.file={tmp_path / 'prometheus.yml'}", f"--web.listen-address={address}",
                f"--storage.tsdb.path={tmp_path / 'data'}",
            ],
            log=tmp_path / "prometheus.log", environment={},
        )
    )  # fmt: skip
    try:
        server.await_ready(lambda: _answers(address))
        yield f"http://{address}"
    finally:
        server.stop()


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{address}/-/ready", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def asked(prometheus: str, query: str) -> dict[str, float]:
    """The value of each dlq or target."""
    address = f"{prometheus}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    with urllib.request.urlopen(address, timeout=30) as answer:
        found = json.load(answer)["data"]["result"]
    return {one["metric"].get("dlq", one["metric"].get("target", "")): float(one["value"][1]) for one in found}


@pytest.mark.soak
def test_prometheus_has_the_right_values(bench: Workbench, prometheus: str) -> None:
    eventually(lambda: asked(prometheus, "redrive_success_total"), within=60, every=0.2)
    name = bench.source_url.rsplit("/", 1)[-1]
    assert asked(prometheus, "redrive_captured_total") == {bench.name: 3}
    assert asked(prometheus, "redrive_success_total") == {bench.name: 2}
    assert asked(prometheus, "redrive_failure_total") == {bench.name: 1}
    assert asked(prometheus, "redrive_parked_letters") == {bench.name: 1}
    assert asked(prometheus, "redrive_attempts_total") == {name: 3}
    assert asked(prometheus, "redrive_slice_seconds_count") == {"": 1}
    assert asked(prometheus, "redrive_stopped") == {"": 0}
    assert asked(prometheus, "up") == {"": 1}


@pytest.mark.soak
@pytest.mark.long  # CI runs a demo of its own
@pytest.mark.timeout(300)
def test_after_a_demo_prometheus_has_what_its_judge_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRIVE_METRICS_TOKEN", TOKEN)
    with (
        Stack(tmp_path / "stack") as stack,
        Demo(stack, say=lambda _: None) as demo,
        scraping(demo.address, tmp_path) as prometheus,
    ):
        told = demo.tell_incident(60)
        counts = told.judgement.counts()
        (dlq,) = eventually(lambda: asked(prometheus, "redrive_success_total"), within=20)
        expected = [counts["letters"], counts["delivered"], counts["parked"]]
        names = ("redrive_captured_total", "redrive_success_total", "redrive_parked_letters")
        eventually(lambda: [asked(prometheus, name).get(dlq, 0) for name in names] == expected, within=30)
        assert (told.judgement.findings, counts["letters"]) == ((), 60)
    stack.postgres.forget()


def test_its_own_tool_finds_nothing_to_say(bench: Workbench, client: Client) -> None:
    text = client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).content
    checked = subprocess.run([str(PROMTOOL), "check", "metrics"], input=text, capture_output=True, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")
