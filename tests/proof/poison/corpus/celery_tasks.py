"""Celery's envelopes, whole and broken, as kombu writes them for SQS."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tests.proof.poison.corpus.payload import Payload

#: Payloads that are not shown.
_CLOSED: Final = frozenset({
    "compression unknown", "compression of damaged bytes", "a payload that is no JSON", "a payload that is no base64",
    "a payload that is no UTF-8", "a payload of nothing", "a pickled payload", "a YAML payload", "a msgpack payload",
    "a signed payload", "a payload of an unknown type", "a zipped bomb", "properties empty",
})  # fmt: skip

Document = dict[str, Any]
_ID: Final = "3b1d6c1e-6b7a-4d77-9c37-0c6f5f0e9f10"
_PAYLOAD: Final = [["celery-argument"], {}, {"callbacks": None, "errbacks": None, "chain": None, "chord": None}]
_PAST: Final = "2001-02-03T04:05:06.000789+00:00"
_FUTURE: Final = "2999-12-31T23:59:59+00:00"


def some() -> Iterator[Payload]:
    """Every one: in base64, as kombu has it; and some as plain JSON."""
    for name, document in {**dict(_headers()), **dict(_payloads()), **dict(_shapes())}.items():
        body = base64.b64encode(json.dumps(document).encode()).decode()
        yield Payload(f"celery: {name}", body, closed=name in _CLOSED)
    yield Payload("celery: plain", json.dumps(envelope()))
    yield Payload("celery: indented", json.dumps(envelope(), indent=2))
    yield Payload("celery: broken base64", base64.b64encode(json.dumps(envelope()).encode()).decode()[:-3])
    yield Payload("celery: base64 of half", base64.b64encode(json.dumps(envelope()).encode()[:-5]).decode())
    yield Payload("celery: base64 in lines", base64.encodebytes(json.dumps(envelope()).encode()).decode())
    yield Payload("celery: base64 twice", base64.b64encode(base64.b64encode(json.dumps(envelope()).encode())).decode())
    deep = json.dumps(envelope()).replace('"source": null', '"source": ' + "[" * 99 + "]" * 99)
    yield Payload("celery: nested headers", deep, closed=True)
    yield Payload("celery: NaN in headers", json.dumps(envelope(headers={"retries": float("nan")})), closed=True)
    yield Payload("celery: equal names", json.dumps(envelope()).replace('{"body"', '{"body": "x", "body"', 1))
    yield Payload("celery: half a pair", json.dumps(envelope(headers={"task": "\ud800"})), closed=True)


def envelope(
    headers: Mapping[str, object] = {}, properties: Mapping[str, object] = {}, body: object = None
) -> Document:
    """A task message of protocol 2, with other fields where they are named."""
    payload = base64.b64encode(json.dumps(_PAYLOAD).encode()).decode() if body is None else body
    return {
        "body": payload, "content-encoding": "utf-8", "content-type": "application/json",
        "headers": {
            "lang": "py", "task": "shop.charge", "id": _ID, "shadow": None, "eta": None, "expires": None,
            "group": None, "group_index": None, "retries": 0, "timelimit": [None, None], "root_id": _ID,
            "parent_id": None, "argsrepr": "('celery-argument',)", "kwargsrepr": "{}", "source": None, **headers,
        },
        "properties": {
            "correlation_id": _ID, "reply_to": "r", "delivery_mode": 2,
            "delivery_info": {"exchange": "", "routing_key": "shop"}, "priority": 0, "body_encoding": "base64",
            "delivery_tag": "t-1", **properties,
        },
    }  # fmt: skip


def _headers() -> Iterator[tuple[str, Document]]:
    yield "protocol 2", envelope()
    yield "unknown task", envelope({"task": "no.such.task"})
    yield "a task of no name", envelope({"task": ""})
    yield "a task of a number", envelope({"task": 7})
    yield "a task of 100000 characters", envelope({"task": "t" * 100_000})
    yield "an id of a number", envelope({"id": 7})
    yield "no id", envelope({"id": None})
    yield "an id of a script", envelope({"id": "<script>alert('id')</script>"})
    yield "expires in the past", envelope({"expires": _PAST}, {"expiration": 1})
    yield "expires in the future", envelope({"expires": _FUTURE})
    yield "expires at no time", envelope({"expires": "tomorrow"})
    yield "expires at a number", envelope({"expires": 86_400})
    yield "expires in year nought", envelope({"expires": "0000-01-01T00:00:00"})
    yield "expires at the end of time", envelope({"expires": "9999-12-31T23:59:59-14:00"})
    yield "expires at the beginning of time", envelope({"expires": "0001-01-01T00:00:00+14:00"})
    yield "eta in the past", envelope({"eta": _PAST})
    yield "eta in the future", envelope({"eta": _FUTURE})
    yield "eta at no time", envelope({"eta": "soon"})
    yield "eta of an object", envelope({"eta": {"__type__": "datetime", "__value__": _PAST}})
    yield "eta of a list", envelope({"eta": [1, 2]})
    yield "retries of a text", envelope({"retries": "three"})
    yield "retries huge", envelope({"retries": 10**300})
    yield "retries negative", envelope({"retries": -1})
    yield "time limits of a text", envelope({"timelimit": "60"})
    yield "time limits infinite", envelope({"timelimit": [1e308, None]})
    yield "time limits of three", envelope({"timelimit": [1, 2, 3]})
    yield "a group", envelope({"group": "9c5c1b5e-group", "group_index": 0})
    yield "a chord's body", envelope({"task": "celery.chord_unlock"})
    yield "compression unknown", envelope({"compression": "application/rot13"})
    yield "compression of damaged bytes", envelope({"compression": "application/x-gzip"})
    yield "compression of a list", envelope({"compression": ["gzip"]})
    yield "stamps", envelope({"stamped_headers": ["x"], "stamps": {"x": ["stamp-value"]}})


def _payloads() -> Iterator[tuple[str, Document]]:
    chord = {"task": "shop.sum", "args": [], "kwargs": {}, "options": {}}
    one = {"task": "shop.charge", "id": _ID, "args": ["of protocol one"], "kwargs": {}, "retries": 0, "eta": None}
    yield "protocol 1", envelope(body=_packed(one), headers={}) | {"headers": {}}
    yield "protocol 1, expired", envelope(body=_packed({**one, "expires": _PAST})) | {"headers": {}}
    yield "protocol 1 of a group", envelope(body=_packed({**one, "taskset": "g-1"})) | {"headers": {}}
    yield "protocol 1 without args", envelope(body=_packed({"task": "t", "id": "i"})) | {"headers": {}}
    yield "in a chord", envelope(body=_packed([[], {}, {"chord": chord}]))
    yield "with a chain", envelope(body=_packed([[], {}, {"chain": [chord], "callbacks": [chord], "errbacks": None}]))
    yield "args of an object", envelope(body=_packed([{}, [], {}]))
    yield "two parts", envelope(body=_packed([[], {}]))
    yield "a payload of null", envelope(body=_packed(None))
    yield "a payload of a number", envelope(body=_packed(5))
    yield "a payload that is no JSON", envelope(body=base64.b64encode(b"no json in here").decode())
    yield "a payload that is no base64", envelope(body="***not base64***")
    yield "a payload that is no UTF-8", envelope(body=base64.b64encode(b"\xff\xfe\x00").decode())
    yield "a payload of nothing", envelope(body="")
    yield (
        "a pickled payload",
        envelope(body="gASVBQAAAAAAAABLAS4=") | {"content-type": "application/x-python-serialize"},
    )
    yield "a YAML payload", envelope(body="a: 1") | {"content-type": "application/x-yaml"}
    yield "a msgpack payload", envelope(body="k5CAgA==") | {"content-type": "application/x-msgpack"}
    yield "a signed payload", envelope(body="c2lnbmVk") | {"content-type": "application/data"}
    yield "a payload of an unknown type", envelope(body="eA==") | {"content-type": "text/unheard-of"}
    bomb = base64.b64encode(zlib.compress(b"[" + b" " * 50_000_000 + b"[], {}, {}]")).decode()
    yield "a zipped bomb", envelope({"compression": "application/x-gzip"}, body=bomb)
    small = base64.b64encode(zlib.compress(json.dumps(_PAYLOAD).encode())).decode()
    yield "a zipped payload", envelope({"compression": "application/x-gzip"}, body=small)
    yield "a foreign encoding", envelope() | {"content-encoding": "utf-16"}
    yield "a plain payload", envelope(properties={"body_encoding": None}, body=json.dumps(_PAYLOAD))


def _shapes() -> Iterator[tuple[str, Document]]:
    yield "headers of a list", envelope() | {"headers": [1]}
    yield "headers of a text", envelope() | {"headers": "text for headers"}
    yield "headers of null", envelope() | {"headers": None}
    yield "no headers", {name: one for name, one in envelope().items() if name != "headers"}
    yield "properties of a text", envelope() | {"properties": "text for properties"}
    yield "properties of null", envelope() | {"properties": None}
    yield "no properties", {name: one for name, one in envelope().items() if name != "properties"}
    yield "properties empty", envelope() | {"properties": {}}
    yield "delivery info of a list", envelope(properties={"delivery_info": []})
    yield "a routing key of a number", envelope(properties={"delivery_info": {"routing_key": 5}})
    yield "a routing key of a foreign queue", envelope(properties={"delivery_info": {"routing_key": "x" * 300}})
    yield "a body of a number", envelope(body=7)
    yield "a body of an object", envelope(body={"a": 1})
    yield "no body", {name: one for name, one in envelope().items() if name != "body"}
    yield "body encoding unknown", envelope(properties={"body_encoding": "base85"})
    yield "body encoding of a number", envelope(properties={"body_encoding": 64})


def _packed(payload: object) -> str:
    return base64.b64encode(json.dumps(payload).encode()).decode()
