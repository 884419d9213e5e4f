"""The clients of a channel: their deadlines and their endpoint."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from kombu import Connection
from kombu.asynchronous import Hub, get_event_loop, set_event_loop

from redrive_service.broker.version import KombuValue
from reprocessing.gateways.aws.sessions import new_session

QUEUE = "redrive-control"


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS's standard variables and no others."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", "http://127.0.0.1:4566")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "sandbox")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "sandbox")


@contextmanager
def _channel(own: dict[str, str] | None = None, **options: KombuValue) -> Iterator[KombuValue]:
    queues = {QUEUE: {"url": f"http://127.0.0.1:4566/000000000000/{QUEUE}", **(own or {})}}
    connection = Connection(
        "sqs://",
        transport="redrive_service.broker.transport:Transport",
        transport_options={"region": "eu-west-1", "is_secure": True, "predefined_queues": queues, **options},
    )
    with connection:
        yield connection.default_channel


def _waits(client: KombuValue) -> tuple[float, float, int]:
    config = client.meta.config
    return config.connect_timeout, config.read_timeout, config.retries["total_max_attempts"]


def test_calls_are_bounded_and_a_receive_may_last_past_its_long_poll() -> None:
    with _channel(wait_time_seconds=20) as channel:
        assert _waits(channel.sqs(QUEUE)) == (3, 5, 2)
        assert _waits(channel._receiving_client(QUEUE)) == (3, 30, 1)
        assert _waits(channel._new_release_client(channel.sqs(QUEUE))) == (5, 5, 1)


@pytest.mark.parametrize(
    ("options", "waits"),
    [
        ({"client-config": {"read_timeout": 7}}, (3, 7, 2)),
        ({"timeouts": {"connect": 1, "call_read": 2, "call_attempts": 4}}, (1, 2, 4)),
    ],
    ids=["kombu's own setting", "ours"],
)
def test_the_waits_of_calls_can_be_changed(options: dict[str, KombuValue], waits: tuple[float, float, int]) -> None:
    with _channel(**options) as channel:
        assert _waits(channel.sqs(QUEUE)) == waits


def test_endpoint_region_and_credentials_come_from_awss_own_variables() -> None:
    with _channel() as channel:
        client = channel.sqs(QUEUE)
        assert (client.meta.endpoint_url, client.meta.region_name) == ("http://127.0.0.1:4566", "eu-west-1")


def test_client_config_overrides_the_region() -> None:
    with _channel(**{"client-config": {"region_name": "eu-north-1"}}) as channel:
        assert channel.sqs(QUEUE).meta.region_name == "eu-north-1"


@pytest.mark.parametrize(("key", "used"), [("", "sandbox"), ("own", "own")])
def test_credentials_of_a_queue_are_used_unless_they_are_empty(key: str, used: str) -> None:
    with _channel({"access_key_id": key, "secret_access_key": key}) as channel:
        assert channel.sqs(QUEUE)._request_signer._credentials.access_key == used


def test_the_clients_of_a_channel_share_one_copy_of_botocores_data_files() -> None:
    with _channel() as channel:
        calls, receives = channel.sqs(QUEUE), channel._receiving_client(QUEUE)
        assert calls._loader is receives._loader is new_session().get_component("data_loader")


@pytest.mark.parametrize(("secure", "address"), [(True, "https://sqs.eu-west-1"), (False, "http://sqs.eu-west-1")])
def test_is_secure_selects_https_or_http(secure: bool, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL_SQS")
    with _channel(is_secure=secure) as channel:
        assert channel.sqs(QUEUE).meta.endpoint_url == f"{address}.amazonaws.com"


def test_a_poll_is_never_faster_than_ten_times_a_second() -> None:
    with _channel(polling_interval=0) as channel:
        assert channel.connection.polling_interval == 0.1


@pytest.mark.soak
def test_the_event_loops_connection_is_made_once_a_queue() -> None:
    before = get_event_loop()
    set_event_loop(Hub())
    try:
        with _channel() as channel:
            assert channel.asynsqs(QUEUE) is channel.asynsqs(QUEUE)
    finally:
        loop = get_event_loop()
        assert loop is not None
        loop.close()
        set_event_loop(before)
