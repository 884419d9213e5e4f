"""The curl examples of docs/api.md run as they stand; its document is the one that is served."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
from django.db import connection
from django.test import Client

from reprocessing.domain.api.scopes import Scope
from reprocessing.models import BulkAction, DeadLetterQueue, Run
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, parked
from tests.reprocessing.api.callers import program
from tests.reprocessing.api.servers import serving

DOCS: Final = Path(__file__).resolve().parents[3] / "docs"
PAGE: Final = (DOCS / "api.md").read_text()


def commands() -> list[str]:
    """The commands of the page's shell blocks, in their order."""
    blocks = "".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL))
    return re.sub(r"\\\n\s*", "", blocks).strip().splitlines()


@pytest.mark.soak
@pytest.mark.django_db(transaction=True)
def test_the_examples_do_what_the_page_says(settings: Any) -> None:  # noqa: ANN401
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    source = dlq("orders")
    parked(source), parked(source, key="test")
    connection.close()
    answers = list[dict[str, Any]]()
    with serving() as address:
        asked = {"REDRIVE": address, "TOKEN": program().secret, "PATH": "/usr/bin:/bin"}
        for command in commands():
            done = subprocess.run(["bash", "-c", command], capture_output=True, check=True, env=asked, timeout=60)
            answers.append(json.loads(done.stdout))
    status, messages, looked, planned, started, run, aborted, bulk, stopped = answers
    assert (status["messages"]["parked"], messages["total"]) == (2, 2)
    assert (looked["dry_run"], planned["run"]["state"], started["run"]["state"]) == (True, "planned", "running")
    assert (run["run"], aborted["run"]["state"]) == ("deploy-42", "aborted")
    assert (bulk["bulk_action"]["messages"], stopped["changed"]) == (1, True)
    assert (Run.objects.get().state, BulkAction.objects.get().reason) == ("aborted", "test data")
    assert DeadLetterQueue.objects.get().stop_reason == "INC-7"


def test_the_page_has_every_scope() -> None:
    table = PAGE.partition("| scope |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(\w+:\w+)`", table)) == {scope.value for scope in Scope}


def test_the_document_in_the_repository_is_the_one_that_is_served() -> None:
    assert json.loads((DOCS / "openapi.json").read_text()) == Client().get("/api/v1/openapi.json").json()
