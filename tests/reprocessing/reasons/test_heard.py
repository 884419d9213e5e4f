"""The reporter with the service's own endpoint, over HTTP."""

from __future__ import annotations

import pytest
from pytest_django.live_server_helper import LiveServer

from reprocessing.models import Letter, Report
from reprocessing.reasons import Counts, Names, Reporter, reporting
from reprocessing.store.outcomes import reporters
from tests.reprocessing.store.stock import Stock


@pytest.fixture
def stock(transactional_db: None) -> Stock:
    """A letter that was sent, and whose consumer reports outcomes."""
    stock = Stock()
    stock.hand_over("m-1")
    return stock


def test_a_consumers_reports_are_applied_to_its_letter(stock: Stock, live_server: LiveServer) -> None:
    token = str(reporters.save_reporter("shop", [stock.target], anew=False, by="ann", reason="a test").token)
    reporter = Reporter(f"{live_server.url}/reports", token)
    message = {"MessageId": "m-1", "MessageAttributes": {
        "RedriveId": {"StringValue": f"{stock.letter.public_id}:1", "DataType": "String"},
    }}  # fmt: skip
    with pytest.raises(ValueError, match="no stock"), reporting(reporter, message=message):
        raise ValueError("no stock")
    with reporting(reporter, message=message, acknowledges=True):
        pass
    reporter.report("delivered", Names("m-1", "not a redrive id"))
    reporter.close(within=10)
    assert reporter.counts == Counts(taken=3, accepted=2, refused=1)
    said = list(Report.objects.order_by("happened_at").values_list("verdict", "type", "message", "attempt_no"))
    assert said == [("retrying", "ValueError", "no stock", 1), ("delivered", "", "", 1)]
    assert Letter.objects.get().state == "delivered"


def test_an_unknown_token_does_no_harm(stock: Stock, live_server: LiveServer) -> None:
    reporter = Reporter(f"{live_server.url}/reports", "redrive-nobody")
    reporter.report("delivered", Names("m-1"))
    reporter.close(within=10)
    assert reporter.counts == Counts(taken=1, dropped=1)
    assert Report.objects.count() == 0
