"""Read settings.REDRIVE into a typed, frozen value (`Conf`). Every setting is optional.

    REDRIVE = {"LANES_PER_TASK": 1, "MARKS": {"message_id": None}}

Durations are seconds in the settings and timedeltas here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from importlib.util import find_spec
from typing import Any

from django.conf import settings

from reprocessing.domain.aws.pricing import FIFO, STANDARD, Prices
from reprocessing.domain.configuration.setting_problems import problems as problems_of_value
from reprocessing.domain.errors import InvalidSettings
from reprocessing.domain.message.redrive_attributes import MarkNames
from reprocessing.domain.notifications.destination import Destination, Unusable, read_destination
from reprocessing.domain.notifications.thresholds import Thresholds
from reprocessing.domain.safety.url_policy import AllowList, allow_list
from reprocessing.domain.targets.signing_secret import secret_bytes as key_of_secret

_ALERTS = Thresholds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conf:
    """Settings of all DLQs. Names in settings.REDRIVE are the same, in upper case.

    Attributes:
        lease: time for which a worker leases a key queue; the key queues of a killed worker are free after this time.
        slice: time that one replay task works before it enqueues a task for the remaining messages.
        lanes_per_task: ordering keys of one replay task; 1 makes one task per key.
        intent_size: how many messages a worker sends to a queue together, at most. It first commits their attempts,
            and then sends them. If the worker is killed while it sends, all of them may be sent twice.
        open_requests: max open requests of one worker to HTTP endpoints and functions.
        held_copies_limit: default for new DLQs: max captured messages that stay in the DLQ, invisible, until they are
            finished. Above the limit, messages are deleted from the DLQ when they are captured.
        max_unsettled: max messages that were sent to one target and whose outcome is not known yet.
        count_lag: max time after which SQS's message counts show a change of the queue.
        receive_visibility: visibility timeout of messages received from a DLQ, in whole seconds.
        long_poll: WaitTimeSeconds of receives, in whole seconds.
        receivers: threads that receive from one DLQ at the same time.
        hints_per_slot: a hint is a task that sends the messages of key queues. Max hints in the task queue, divided by
            8: the default 2 allows 16 hints.
        hint_life: time after which a hint that no worker has taken is sent again. It doubles while workers take no
            hint.
        hint_life_cap: limit to which `hint_life` doubles.
        doctor_every: interval of the checks of redrive_doctor; 0: never.
        discover_every: interval at which beat repeats discoveries of DLQs; 0: never.
        approval_life: time in which a second person can approve a requested action; then the request expires.
        history: retention of finished messages and their attempts.
        outbound_hosts: host names, addresses and networks, each optionally with a port, that health checks, HTTP
            targets and notifications may reach.
        secrets: signing secrets of HTTP targets, by name. They are never shown.
        payload_keys: the keys that protect payloads, each as NAME=KEY; the first key encrypts, all keys decrypt. KEY is
            32 bytes in base64, or the ARN of a KMS key. Empty: payloads are stored readable. Keys are never shown.
        payload_key_cache: time that a process keeps a decrypted data key in memory.
        masked_fields: names of fields, and JMESPath expressions of body fields, that are masked in all DLQs.
        place: name of the environment, shown on every page of the admin.
        colour: background of this name: red, amber, green, blue, violet or grey.
        own_queues: URLs of the SQS queues of the service's own tasks. `provision_queues --own` gives them DLQs.
        cloudwatch: namespace of metrics in CloudWatch; empty: no metrics are published.
        destinations: URLs of notification destinations, by name. They contain secrets, and are never shown.
        public_url: URL of the admin, such as https://redrive.example.com; empty: notifications have no links.
        api_rate: max requests a second of one API token. After a pause, the token may send the requests of 5 s at once.
        token_recheck: for how long a sign-in by an OpenID provider confirms the owner of an API token. After this time,
            the token is refused until the owner signs in again. 0: tokens are never refused for this reason.
        alert_...: thresholds of notifications (docs/notifications.md).
        first_steps: show the demo's checklist on the dashboard.
        marks: names of the attributes that the service adds to a sent message, for the keys redrive, idempotency_key,
            message_id and reprocessed_from. If the value of a key is None, its attribute is not added.
        traces: create an OpenTelemetry span for each attempt; the package opentelemetry-api must be installed.
        trace_messages: send messages with the `traceparent` of their attempt's span, which replaces an earlier
            `traceparent`.
        price_standard: US dollars for a million requests to standard queues.
        price_fifo: US dollars for a million requests to FIFO queues.
    """

    lease: timedelta = timedelta(seconds=8)
    slice: timedelta = timedelta(seconds=5)
    lanes_per_task: int = 50
    intent_size: int = 50
    open_requests: int = 500
    held_copies_limit: int = 20_000
    max_unsettled: int = 1_000
    count_lag: timedelta = timedelta(seconds=60)
    receive_visibility: int = 120
    long_poll: int = 20
    receivers: int = 8
    hints_per_slot: int = 2
    hint_life: timedelta = timedelta(seconds=5)
    hint_life_cap: timedelta = timedelta(seconds=60)
    doctor_every: timedelta = timedelta(minutes=10)
    discover_every: timedelta = timedelta(days=1)
    approval_life: timedelta = timedelta(days=1)
    history: timedelta = timedelta(days=90)
    outbound_hosts: AllowList = field(default_factory=AllowList)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    payload_keys: tuple[str, ...] = field(default=(), repr=False)
    payload_key_cache: timedelta = timedelta(minutes=5)
    masked_fields: tuple[str, ...] = ()
    place: str = ""
    colour: str = "grey"
    cloudwatch: str = ""
    own_queues: tuple[str, ...] = ()
    destinations: Mapping[str, Destination] = field(default_factory=dict, repr=False, hash=False)
    public_url: str = ""
    api_rate: float = 20.0
    token_recheck: timedelta = timedelta(days=30)
    alert_parked_count: int = _ALERTS.parked_count
    alert_parked_age: timedelta = _ALERTS.parked_age
    alert_expires_within: timedelta = _ALERTS.expires_within
    alert_growing_for: timedelta = _ALERTS.growing_for
    alert_silent_for: timedelta = _ALERTS.silent_for
    alert_stalled_for: timedelta = _ALERTS.stalled_for
    first_steps: bool = False
    marks: MarkNames = field(default_factory=MarkNames)
    traces: bool = False
    trace_messages: bool = False
    price_standard: float = STANDARD
    price_fifo: float = FIFO

    @property
    def thresholds(self) -> Thresholds:
        """Return the thresholds of notifications."""
        return Thresholds(**{setting.name: getattr(self, f"alert_{setting.name}") for setting in fields(Thresholds)})

    @property
    def prices(self) -> Prices:
        """Return the prices of SQS requests."""
        return Prices(self.price_standard, self.price_fifo)


_DESTINATIONS = "DESTINATIONS"
_DEFAULTS: dict[str, object] = {setting.name.upper(): getattr(Conf(), setting.name) for setting in fields(Conf)}


#: The last value of settings.REDRIVE that `current` read, copied, and its settings. A page may ask a thousand times.
_last_read: tuple[object, Conf] | None = None


def current() -> Conf:
    """Return the settings in settings.REDRIVE.

    If these are invalid, raise `InvalidSettings`, which lists all problems.
    """
    global _last_read  # noqa: PLW0603  each process has one settings.REDRIVE
    given = getattr(settings, "REDRIVE", {})
    last = _last_read
    if last is None or last[0] != given:
        found = read_settings(given)
        last = _last_read = (deepcopy(dict(given)), found)  # a copy, so that a change of `given` itself is noticed
    return last[1]


def read_settings(given: Mapping[str, Any]) -> Conf:
    """Return the settings in a mapping like settings.REDRIVE. Raise `InvalidSettings`, which lists all problems."""
    if not isinstance(given, Mapping):
        raise InvalidSettings("settings.REDRIVE is not a mapping of names to values. Write REDRIVE = {...}.")
    problems = list(_problems(given))
    if not problems:
        conf = Conf(**{name.lower(): _value(name, value) for name, value in given.items() if name != _DESTINATIONS})
        problems = list(_contradictions(conf))
        found = _destinations(conf, given.get(_DESTINATIONS, {}))
        problems += [
            f"{_DESTINATIONS}: {name}: {destination.why}."
            for name, destination in found.items()
            if isinstance(destination, Unusable)
        ]
        if not problems:
            usable = {name: destination for name, destination in found.items() if not isinstance(destination, Unusable)}
            return replace(conf, destinations=usable)
    raise InvalidSettings("settings.REDRIVE cannot be used:\n" + "\n".join(f"- {problem}" for problem in problems))


def _problems(given: Mapping[str, Any]) -> Iterator[str]:
    for name, value in given.items():
        if name not in _DEFAULTS:
            yield f"{name} is not a setting. The settings are: {', '.join(_DEFAULTS)}."
        else:
            yield from problems_of_value(name, value, _DEFAULTS[name])


def _destinations(conf: Conf, urls: Mapping[str, str]) -> dict[str, Destination | Unusable]:
    keys = {name: key for name, secret in conf.secrets.items() if (key := key_of_secret(secret))}
    return {name: read_destination(url, keys, conf.outbound_hosts) for name, url in urls.items()}


def _value(name: str, value: Any) -> Any:  # noqa: ANN401 - of the same type as its default
    match _DEFAULTS[name]:
        case timedelta():
            return timedelta(seconds=value)
        case MarkNames():
            return MarkNames(**value)
        case AllowList():
            return allow_list(value)
        case Mapping():
            return dict(value)
        case tuple():
            return tuple(value)
        case _:
            return value


def _contradictions(conf: Conf) -> Iterator[str]:
    if conf.slice >= conf.lease:
        yield "SLICE is not shorter than LEASE: leases would end before tasks. Shorten SLICE, or lengthen LEASE."
    if conf.hint_life > conf.hint_life_cap:
        yield "HINT_LIFE is longer than HINT_LIFE_CAP. Shorten HINT_LIFE."
    if conf.long_poll >= conf.receive_visibility:
        yield "LONG_POLL is not shorter than RECEIVE_VISIBILITY. Shorten LONG_POLL."
    names = [name for name in (getattr(conf.marks, setting.name) for setting in fields(MarkNames)) if name]
    if len(set(names)) < len(names):
        yield "MARKS gives two marks the same name. Name them differently."
    if conf.trace_messages and not conf.traces:
        yield "TRACE_MESSAGES is True, but TRACES is not. Set TRACES to True."
    if conf.traces and find_spec("opentelemetry") is None:
        yield "TRACES is True, but OpenTelemetry is not installed. Install opentelemetry-api, or set TRACES to False."
