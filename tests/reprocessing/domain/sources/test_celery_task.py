"""Every task message that Celery writes is read, and no part of it is executed."""

from __future__ import annotations

import base64
import bz2
import json
import lzma
import os
import pickle
import tracemalloc
import zlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import pytest
from celery import Celery, chain, chord, group
from hypothesis import given
from hypothesis import strategies as st
from kombu import Connection
from kombu.transport.virtual import Message

from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.domain.message.json_view import Unreadable
from reprocessing.domain.replay.verdicts import Park
from reprocessing.domain.sources.celery_task import LIMIT, NotATask, TaskMessage, celery_time, read, why_not_send
from tests import envelopes
from tests.envelopes import Document

NOW = datetime(2026, 11, 22, 1, 2, 3, tzinfo=UTC)


def message(body: bytes) -> TaskMessage:
    found = read(body)
    assert isinstance(found, TaskMessage)
    return found


def sent(*names: str, as_what: Callable[..., Any] = group) -> list[Document]:
    def send(app: Celery) -> None:
        tasks = [app.signature(name, args=(1,)) for name in names]
        if as_what is chord:
            chord(tasks, app=app)(app.signature("end"))
        else:
            as_what(*tasks, app=app).apply_async()

    return envelopes.documents(send)


def changed(body: bytes, change: Callable[[Document], object]) -> bytes:
    envelope = envelopes.opened(body)
    change(envelope)
    return envelopes.written(envelope)


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("compression", [None, "gzip", "bzip2", "lzma"])
@pytest.mark.parametrize("protocol", [1, 2])
def test_messages_of_both_protocols_are_read(protocol: int, compression: str | None, plain: bool) -> None:
    body = envelopes.task(
        "shop.charge", 1, "two", kwargs={"three": 3.5}, protocol=protocol, compression=compression, plain=plain,
        task_id="t-1", retries=2, eta=NOW, expires=NOW + timedelta(days=9_000), time_limit=7,
    )  # fmt: skip
    found = message(body)
    assert (found.protocol, found.task, found.id, found.retries) == (protocol, "shop.charge", "t-1", 2)
    assert (found.args, json.dumps(found.kwargs, default=str)) == ([1, "two"], '{"three": "3.5"}')
    assert found.called_with == '[1, "two"] {"three": "3.5"}'
    assert (celery_time(found.eta), celery_time(found.expires)) == (NOW, NOW + timedelta(days=9_000))
    assert (found.routing_key, found.opaque, found.harm, found.time_limit) == ("shop", "", "", 7)
    assert (found.is_of_group_or_chord, found.group) == (False, "")
    assert why_not_send(found, now=NOW) is None


@pytest.mark.parametrize(
    ("content_type", "why"),
    [
        ("application/x-python-serialize", "its payload is pickled, and unpickling could run code"),
        ("application/x-yaml", "its payload is YAML, which this service does not read"),
        ("application/x-msgpack", "its payload is msgpack, which this service does not read"),
        ("application/data", "its payload is signed, or raw bytes, which this service does not read"),
        ("application/x-other", "its payload has a content type that this service does not know"),
    ],
)
def test_a_payload_that_is_not_json_is_not_shown_and_headers_are(content_type: str, why: str) -> None:
    def written(protocol: int) -> bytes:
        body = envelopes.task("shop.charge", 1, serializer="pickle", task_id="t-1", protocol=protocol)
        return changed(body, lambda one: one.update({"content-type": content_type}))

    found = message(written(2))
    assert (found.task, found.id, found.opaque, found.args, found.kwargs) == ("shop.charge", "t-1", why, None, None)
    assert found.called_with == "(1,) {}"
    assert why_not_send(found, now=NOW) is None
    old = message(written(1))
    assert (old.task, old.opaque) == ("", why)
    assert why_not_send(old, now=NOW) == Park(ParkedReason.UNREADABLE_TASK, f"{why}.")


class _Burglar:
    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, ("exit 7",)


def test_nothing_is_unpickled(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        pytest.fail("something was unpickled")

    stolen = base64.b64encode(pickle.dumps([_Burglar(), {}, {}])).decode()
    for name in ("loads", "load", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    for content_type in ("application/x-python-serialize", "application/json", "application/data", "", None):
        body = envelopes.written({**envelopes.opened(envelopes.task()), "body": stolen, "content-type": content_type})
        assert message(body).args is None


COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "application/x-gzip": zlib.compress,
    "application/x-bz2": bz2.compress,
    "application/x-lzma": lzma.compress,
}


@pytest.mark.soak
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_decompression_bomb_is_unpacked_only_up_to_the_limit(compression: str) -> None:
    bomb = base64.b64encode(COMPRESSIONS[compression](b" " * (64 << 20))).decode()
    body = changed(
        envelopes.task(), lambda one: (one.update(body=bomb), one["headers"].update(compression=compression))
    )
    tracemalloc.start()
    try:
        assert message(body).opaque == f"its payload has more than {LIMIT} bytes, the most that is read"
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 16 * LIMIT


def test_parts_of_groups_and_chords_are_told_from_chains() -> None:
    parts = [message(envelopes.written(one)) for one in sent("a", "b")]
    assert [(one.is_of_group_or_chord, one.is_in_chord, bool(one.group)) for one in parts] == [(True, False, True)] * 2
    header = [message(envelopes.written(one)) for one in sent("a", "b", as_what=chord)]
    assert [(one.is_of_group_or_chord, one.is_in_chord, bool(one.group)) for one in header] == [(True, True, True)] * 2
    first = message(envelopes.written(sent("a", "b", as_what=chain)[0]))
    assert not first.is_of_group_or_chord
    wait = Park(ParkedReason.PART_OF_GROUP, "it is a part of a group of tasks.")
    assert [why_not_send(one, now=NOW) for one in [*parts, *header, first]] == [wait, wait, wait, wait, None]


@pytest.mark.parametrize("name", ["celery.chord_unlock", "celery.chord", "celery.group"])
def test_celerys_tasks_that_stand_for_others_need_a_decision(name: str) -> None:
    found = why_not_send(read(envelopes.task(name)), now=NOW)
    assert found == Park(ParkedReason.PART_OF_GROUP, "it is a part of a chord, or starts tasks.")


@pytest.mark.parametrize("protocol", [1, 2])
@pytest.mark.parametrize(
    ("expires", "over"),
    [
        (NOW, "it expired at 2026-11-22 01:02:03 UTC."),
        (NOW + timedelta(seconds=1), None),
        ("2026-11-22T01:02:03.000001+00:00", None),
        ("2026-11-22T02:02:03+01:00", "it expired at 2026-11-22 01:02:03 UTC."),
        ("2026-11-22T15:02:03", "it expired at 2026-11-22 01:02:03 UTC."),  # in the earliest of all zones
        ("2026-11-22T15:02:04", None),
        ("soon", "its expiry is not a readable time."),
        ("0001-01-01T00:00:00+14:00", "its expiry is not a readable time."),
    ],
)
def test_a_task_that_may_have_expired_in_its_zone_is_not_sent(protocol: int, expires: object, over: str | None) -> None:
    def late(one: Document) -> None:
        if protocol == 2:
            one["headers"]["expires"] = text
        else:
            one["body"] = base64.b64encode(json.dumps({**envelopes.payload(one), "expires": text}).encode()).decode()

    text = expires.isoformat() if isinstance(expires, datetime) else expires
    found = read(changed(envelopes.task(protocol=protocol), late))
    assert why_not_send(found, now=NOW) == (over and Park(ParkedReason.EXPIRED, over))
    assert why_not_send(found, now=NOW, strips_expires=True) is None


def test_a_pickled_message_with_an_expiry_counts_as_expired() -> None:
    found = read(envelopes.task(serializer="pickle", protocol=1, expires=86_400))
    why = "it expires, but its payload, which has the time, is not shown."
    assert why_not_send(found, now=NOW) == Park(ParkedReason.EXPIRED, why)


FOREIGN = {
    "text": b"hello", "nothing": b"", "bytes": b"\xff\xfe", "base64 of text": base64.b64encode(b"hello"),
    "JSON": b'{"order": 7}', "a list": b"[1]", "null": b"null",
    "an SNS notification": b'{"Type": "Notification", "Message": "{}"}',
    "headers without an envelope": b'{"headers": {"task": "t", "id": "1"}, "body": ""}',
    "a kombu message of no task": envelopes.written({**envelopes.opened(envelopes.task()), "headers": {}}),
}  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
def test_other_bodies_are_no_task_and_do_no_harm(name: str) -> None:
    found = read(FOREIGN[name])
    assert isinstance(found, NotATask)
    assert found.harm == ""
    over = why_not_send(found, now=NOW)
    assert over is not None
    assert over.reason is ParkedReason.UNREADABLE_TASK


def broken(change: Callable[[Document], object]) -> bytes:
    return changed(envelopes.task(task_id="t-1"), change)


ENDS = "it would stop the worker that receives it"
PARTS = "it lacks parts of a task message, and would stop the worker that receives it"
GOOD = envelopes.task(task_id="t-1")
SHORT = base64.b64encode(zlib.compress(b"[[], {}, {}]")[:-4]).decode()
HARMFUL: dict[str, tuple[bytes, str]] = {
    "cut off": (
        broken(lambda one: (one.update(body=SHORT), one["headers"].update(compression="zlib"))),
        "workers would discard it: its compressed payload is incomplete",
    ),
    "properties are no object": (b'{"properties": 1}', ENDS),
    "delivery info is null": (broken(lambda one: one["properties"].update(delivery_info=None)), ENDS),
    "a routing key is a number": (broken(lambda one: one["properties"]["delivery_info"].update(routing_key=1)), ENDS),
    "an unknown encoding": (broken(lambda one: one["properties"].update(body_encoding="rot13")), ENDS),
    "headers are a list": (broken(lambda one: one.update(headers=[1])), ENDS),
    "no id": (broken(lambda one: one["headers"].pop("id")), PARTS),
    "limits are a number": (broken(lambda one: one["headers"].update(timelimit=7)), PARTS),
    "two parts of three": (broken(lambda one: one.update(body="W10=")), PARTS),
    "a null payload": (broken(lambda one: one.update(body="bnVsbA==")), PARTS),
    "no base64": (broken(lambda one: one.update(body="a")), "workers would discard it: its payload is not base64"),
    "no JSON": (
        broken(lambda one: one.update(body="aGVsbG8=")),
        "workers would discard it: it is not JSON: Expecting value at character 0",
    ),
    "damaged": (
        broken(lambda one: one["headers"].update(compression="application/x-gzip")),
        "workers would discard it: its compressed payload is damaged",
    ),
}


@pytest.mark.parametrize("name", HARMFUL)
def test_messages_that_end_a_worker_or_that_it_discards_are_recognised(name: str) -> None:
    body, harm = HARMFUL[name]
    found = read(body)
    assert isinstance(found, NotATask | TaskMessage)
    assert found.harm == harm
    over = why_not_send(found, now=NOW)
    assert over is not None
    assert (over.reason, harm in over.detail) == (ParkedReason.UNREADABLE_TASK, True)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b'{"properties": {}, "a": NaN}', "NaN is not a JSON number"),
        (base64.b64encode(b'{"a": NaN}'), "NaN is not a JSON number"),
        (b'{"a": ' + b"[" * 100 + b"]" * 100 + b"}", "its JSON is nested more than 64 deep"),
    ],
)
def test_an_envelope_that_only_other_parsers_read_is_unreadable(body: bytes, why: str) -> None:
    assert read(body) == Unreadable(why)
    assert why_not_send(read(body), now=NOW) == Park(ParkedReason.UNREADABLE_TASK, f"{why}.")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "task", "id", "args"]), inner),
    max_leaves=5,
)
_PARTS = ("body", "content-type", "content-encoding", "headers", "properties")
_INNER = st.sampled_from(
    ["task", "id", "timelimit", "compression", "eta", "expires", "retries", "delivery_info", "body_encoding"]
)
_ENVELOPES = st.builds(
    lambda where, name, value: changed(GOOD, lambda one: one[where].update({name: value})),
    st.sampled_from(["headers", "properties"]), _INNER, _JSON,
) | st.builds(
    lambda values: envelopes.written({**envelopes.opened(GOOD), **values}),
    st.dictionaries(st.sampled_from(["body", "content-type", "headers", "properties"]), _JSON, max_size=2),
)  # fmt: skip
_TOLD = ("task", "id", "retries", "eta", "expires", "called_with", "opaque", "is_of_group_or_chord", "harm")


@given(st.binary() | st.binary().map(base64.b64encode) | _ENVELOPES | _JSON.map(lambda one: json.dumps(one).encode()))
def test_no_body_makes_reading_raise_and_harmless_ones_are_messages_to_kombu(body: bytes) -> None:
    found = read(body)
    if isinstance(found, TaskMessage):
        assert len([getattr(found, name) for name in _TOLD]) == len(_TOLD)
    over = why_not_send(found, now=NOW)
    assert over is None or over.detail.endswith(".")
    if isinstance(found, TaskMessage | NotATask) and not found.harm:
        kombus(body)


def test_a_payload_that_is_no_base64_is_harmful_whatever_its_content_type() -> None:
    for content_type in ("application/json", "text/unheard-of"):
        found = read(envelopes.written({**envelopes.opened(GOOD), "body": "0", "content-type": content_type}))
        assert isinstance(found, TaskMessage)
        assert found.harm == "workers would discard it: its payload is not base64"


@pytest.mark.parametrize("name", [name for name, (_, harm) in HARMFUL.items() if harm == ENDS and "key" not in name])
def test_kombu_still_raises_for_these(name: str) -> None:
    with pytest.raises((AttributeError, TypeError)):  # else they are harmless by now
        kombus(HARMFUL[name][0])


def kombus(body: bytes) -> Message:
    """Return what kombu's SQS transport makes of a body; raises where its worker would end."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        text = ""  # SQS takes no such body
    channel = _channel()
    raw = channel._message_to_python({"Body": text, "ReceiptHandle": "r", "MessageId": "m"}, "shop", "url")
    return Message(raw, channel=channel)


@cache
def _channel() -> Any:  # noqa: ANN401  # kombu has no types
    options = {
        "region": "us-east-1",
        "predefined_queues": {"shop": {"url": "https://sqs.us-east-1.example.com/1/shop"}},
    }
    return Connection("sqs://", transport_options=options).default_channel
