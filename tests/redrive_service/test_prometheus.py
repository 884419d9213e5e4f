"""A real Prometheus scrapes the service, and has the right values; its own tool finds nothing to say of the text."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client
from pytest_django.fixtures import Settings
from pytest_django.live_server_helper import LiveServer

from redrive_service.sandbox.servers.process import RunningServer, Server, free_port
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
    bench = Workbench(fields={"max_attempts": 1})
    for body in ("good", "better", "bad"):
        bench.bury(body)
    bench.ready()
    with bench.refusing("bad"):
        bench.replay()
    return bench


@pytest.fixture
def prometheus(live_server: LiveServer, tmp_path: Path) -> Iterator[str]:
    """Its address; it scrapes the live server every five seconds."""
    address = f"127.0.0.1:{free_port()}"
    token, configuration = tmp_path / "token", tmp_path / "prometheus.yml"
    token.write_text(TOKEN)
    scraped = {
        "job_name": "redrive", "authorization": {"credentials_file": str(token)},
        "static_configs": [{"targets": [live_server.url.removeprefix("http://")]}],
    }  # fmt: skip
    every = {"scrape_interval": "5s", "scrape_timeout": "5s"}
    configuration.write_text(json.dumps({"global": every, "scrape_configs": [scraped]}))
    command = [
        str(PROMETHEUS), f"--config.file={configuration}", f"--web.listen-address={address}",
        f"--storage.tsdb.path={tmp_path / 'data'}",
    ]  # fmt: skip
    server = RunningServer(Server(name="prometheus", command=command, log=tmp_path / "prometheus.log", environment={}))
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
    address = f"{prometheus}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    with urllib.request.urlopen(address, timeout=30) as answer:
        found = json.load(answer)["data"]["result"]
    return {one["metric"].get("dlq", one["metric"].get("target", "")): float(one["value"][1]) for one in found}


@pytest.mark.soak
def test_prometheus_has_the_right_values(bench: Workbench, prometheus: str) -> None:
    eventually(lambda: asked(prometheus, "redrive_success_total"), within=60, every=0.2)
    name = bench.source_url.rsplit("/", 1)[-1]
    values = {
        "redrive_captured_total": {bench.name: 3}, "redrive_success_total": {bench.name: 2},
        "redrive_failure_total": {bench.name: 1}, "redrive_parked_letters": {bench.name: 1},
        "redrive_attempts_total": {name: 3}, "redrive_slice_seconds_count": {"": 1}, "redrive_stopped": {"": 0},
        "up": {"": 1},
    }  # fmt: skip
    assert {query: asked(prometheus, query) for query in values} == values


@pytest.mark.soak
def test_its_own_tool_finds_nothing_to_say(bench: Workbench, client: Client) -> None:
    text = client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).content
    checked = subprocess.run([str(PROMTOOL), "check", "metrics"], input=text, capture_output=True, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")
