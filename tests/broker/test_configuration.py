"""How Celery is told to use SQS."""

from __future__ import annotations

from typing import Any

import pytest
from celery import Celery
from celery.app.defaults import DEFAULTS

from redrive_service.broker.configuration import BrokerIsMisconfigured, celery_settings
from redrive_service.broker.transport import Transport

URLS = {
    name: f"https://sqs.eu-west-1.amazonaws.com/000000000000/{name}" for name in ("redrive-control", "redrive-replay")
}


def _app() -> Celery:
    app = Celery("configured", set_as_current=False)
    settings = celery_settings(queue_urls=URLS, region="eu-west-1")
    app.conf.update({name.removeprefix("CELERY_").lower(): value for name, value in settings.items()})
    return app


def test_every_setting_is_one_that_celery_knows() -> None:
    settings = {name.removeprefix("CELERY_").lower() for name in celery_settings(queue_urls=URLS, region="eu-west-1")}
    assert settings - set(DEFAULTS) == set()


def test_connections_for_reading_and_writing_and_their_copies_use_our_transport() -> None:
    app = _app()
    for connection in (app.connection_for_read(), app.connection_for_write(), app.connection_for_write().clone()):
        assert type(connection.transport) is Transport


def test_the_deadline_for_a_connection_of_the_pool_is_finite() -> None:
    assert _app().conf.broker_pool_acquire_timeout == 10


def test_a_worker_process_with_open_requests_is_not_ended_after_many_tasks_or_for_its_memory() -> None:
    conf = _app().conf
    assert (conf.worker_max_tasks_per_child, conf.worker_max_memory_per_child) == (None, None)


def test_a_queue_that_is_not_declared_is_an_error() -> None:
    app = _app()
    with pytest.raises(KeyError, match="redrive-replya"):
        app.amqp.queues["redrive-replya"]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"queue_urls": {"other": "https://example.com/other"}}, "redrive-control has no URL"),
        ({"queue_urls": {"redrive-control": "https://example.com/0/control.fifo"}}, r"control\.fifo"),
        ({"long_poll_seconds": 0}, "long poll of 0 s"),
        ({"long_poll_seconds": 21}, "long poll of 21 s"),
    ],
)
def test_queues_and_waits_that_sqs_cannot_serve_are_refused(changed: dict[str, Any], why: str) -> None:
    with pytest.raises(BrokerIsMisconfigured, match=why):
        celery_settings(**{"queue_urls": URLS, "region": "eu-west-1", **changed})
