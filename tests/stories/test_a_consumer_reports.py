"""A consumer that uses the hook, and the service behind its endpoint: what it meets is what its letters say."""

from __future__ import annotations

from contextlib import suppress

import pytest
from pytest_django.live_server_helper import LiveServer

from reprocessing.reasons import Reporter, reporting
from reprocessing.store.outcomes import delivery_status, reporters
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)


def test_what_the_hook_reports_is_what_its_letters_say(live_server: LiveServer) -> None:
    bench = Workbench(
        fields={"max_attempts": 1}, target_fields={"proof": "acknowledged", "advance": "settled", "window": 60}
    )
    bench.redrive("well", "broken", "later")
    token = reporters.save_reporter("shop", [bench.target], anew=False, by="ann", reason="a test").token
    hook = Reporter(f"{live_server.url}/reports", str(token))
    for sent in bench.delivered():
        body = sent["Body"]
        with suppress(KeyError), reporting(hook, message=sent, final=body == "broken", acknowledges=True):
            if body != "well":
                raise KeyError(body)
    hook.close(within=20)
    letters = {body: bench.letter(payload__body=body.encode()) for body in ("well", "broken", "later")}
    assert {body: (one.state, delivery_status.status_of(one).how.value) for body, one in letters.items()} == {
        "well": ("delivered", "acknowledged"),
        "broken": ("parked", "failed"),
        "later": ("awaiting", "open"),
    }
    reasons = {
        body: [(one.verdict, one.type) for one in delivery_status.reasons_of(letter)]
        for body, letter in letters.items()
    }
    assert reasons == {
        "well": [("delivered", "")],
        "broken": [("failed", "KeyError")],
        "later": [("retrying", "KeyError")],
    }
    assert (
        len({one.fingerprint for body in ("broken", "later") for one in delivery_status.reasons_of(letters[body])}) == 1
    )
