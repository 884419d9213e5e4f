"""Payloads are for people who may see them: fifty canaries in payloads show where one leaks."""

from __future__ import annotations

import base64
import io
import json
import logging
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.management import call_command
from django.test import Client

from reprocessing.admin.messages import message_page
from reprocessing.admin.parking_lot import decision
from reprocessing.domain.replay.verdicts import Outcome, Refused
from reprocessing.models import (
    ApiToken,
    Approval,
    AuditEntry,
    Breaker,
    BulkAction,
    FailureGroup,
    Letter,
    ManagedObject,
    Report,
    Rule,
    Run,
)
from reprocessing.models.letter import ParkedLetter
from reprocessing.models.notification import NotificationRoute
from reprocessing.pipeline.parking_lot import group_failures, run_bulk_actions
from reprocessing.pipeline.replay import send_batches
from reprocessing.store.ordering import lanes
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.replay.intent import IntendedSend
from reprocessing.store.rights import roles
from tests import envelopes
from tests.reprocessing.admin.site import test_matrix
from tests.reprocessing.admin.site.open_pages import addresses, furnished
from tests.reprocessing.admin.site.sample_rows import operated
from tests.reprocessing.admin.site.test_matrix import EDITOR, OPERATOR
from tests.reprocessing.pipeline.bench import Clock, Workbench
from tests.reprocessing.post import Post, post

__all__ = ["post"]

pytestmark = pytest.mark.django_db(transaction=True)

#: As an account's number would look in a text: letters, and digits that no name has.
CANARY = re.compile(r"kanari7[0-9]{5}q")


class Aviary:
    def __init__(self) -> None:
        self.all: list[str] = []

    def __call__(self, around: str = "{}") -> str:
        self.all.append(f"kanari{700_000 + 37 * len(self.all)}q")
        return around.format(self.all[-1])


def bury(bench: Workbench) -> Aviary:
    """Letters of every form, with a canary in each place that a customer can write to."""
    one = Aviary()
    order = {
        "id": one(), "card": one("4111-{}"), "e-mail": one("{}@example.com"), "url": one("https://shop.invalid/?c={}"),
        "nested": {"deep": {"deeper": [one(), {"deepest": one()}]}}, one(): one(), "escaped": one("\u00e4{}\u202e"),
        "text": one("a sentence about {}."), "json": json.dumps({"inner": one()}), "html": one("<b>{}</b>"),
        "base64": one("token {}"), "error": one("ValueError: {}"), "exceptionType": one("Declined.{}"),
        "Type": one("order.{}"), "Records": [{"body": one(), "messageId": one()}], "headers": {"id": one()},
        "lines": [one(), one(), one()],
    }  # fmt: skip
    told = {
        "trace": ("String", one()), "tenant": ("String", one("tenant {}")), "amount": ("String.money", one()),
        "exceptionType": ("String", one("Declined {}")), "x-error": ("String", one("it failed: {}")),
        one(): ("String", one()), "type": ("String", one("order.{}")), "bytes": ("Binary", one("\x00{}")),
        "picture": ("Binary.png", one("PNG {}")),
    }  # fmt: skip
    send(bench, json.dumps(order), told)
    task = envelopes.task(
        one("shop.{}"), one(), {"key": one()}, task_id=one(), headers={"who": one()}, argsrepr=one("('{}',)")
    )
    send(bench, task.decode(), {})
    send(bench, f"card={one()}&name={one()}", {"form": ("String", one())})
    send(bench, f"<order card='{one()}'><{one()}/>{one()}</order>", {})
    send(bench, one("no form at all, but {}"), {"note": ("String", one("{}"))})
    send(bench, one("{{broken json {}"), {})
    send(bench, base64.b64encode(one().encode()).decode(), {"why": ("String", one())})
    return one


def send(bench: Workbench, body: str, attributes: dict[str, tuple[str, str]]) -> None:
    values: dict[str, Any] = {
        name: {
            "DataType": kind,
            **({"BinaryValue": value.encode()} if kind.startswith("B") else {"StringValue": value}),
        }
        for name, (kind, value) in attributes.items()
    }
    bench.sqs.send_message(QueueUrl=bench.dlq_url, MessageBody=body, MessageAttributes=values)


def report(canary: Aviary) -> None:
    """Consumers say why each letter died, and quote what it held."""
    for number, letter in enumerate(Letter.objects.order_by("pk")):
        if number < 3:
            Report.objects.create(
                public_id=letter.public_id, attempt_no=1, verdict="failed", type=canary("Declined {}"),
                message=canary("no funds on {}"), fingerprint=canary("declined {}"), happened_at=lanes.database_now(),
                received_at=lanes.database_now(), digest=b"said %d" % number,
            )  # fmt: skip


def logged_in(role: str) -> Client:
    if not Group.objects.filter(name=role).exists():
        roles.update_groups()
    user = User.objects.create_user(role, is_staff=True)
    user.groups.set([Group.objects.get(name=role)])
    client = Client(raise_request_exception=False)
    client.force_login(user)
    return client


def told(text: object) -> set[str]:
    return set(CANARY.findall(text.decode(errors="replace") if isinstance(text, bytes) else str(text)))


def heard(records: list[logging.LogRecord]) -> set[str]:
    """The canaries in what was logged, with all that a formatter would write."""
    formatter = logging.Formatter("%(message)s %(args)s")
    return {one for record in records for one in told(formatter.format(record)) | told(vars(record))}


@pytest.fixture
def journey(clock: Clock, caplog: pytest.LogCaptureFixture, post: Post) -> Aviary:
    """Seven letters, captured, replayed in vain, parked, reported on and sorted; whatever is logged is kept."""
    caplog.set_level(logging.DEBUG)
    bench = Workbench(fields={"max_attempts": 1})
    canary = bury(bench)
    bench.ready()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(send_batches, "letters", refuse)
        bench.replay()
    assert set(bench.states().values()) == {"parked"}
    report(canary)
    group_failures.assign_groups(batches=5)
    assert len(set(canary.all)) >= 50
    return canary


def refuse(intended: Sequence[IntendedSend], *_: object, **__: object) -> dict[int, Outcome]:
    return {one.attempt_id: Refused("Busy", "not now") for one in intended}


@pytest.mark.soak
def test_nobody_sees_a_payload_without_the_right(journey: Aviary, caplog: pytest.LogCaptureFixture, post: Post) -> None:
    letters = list(ParkedLetter.objects.order_by("pk").values_list("pk", flat=True))
    furnished()
    client, sung = logged_in(OPERATOR), dict[str, set[str]]()  # a viewer may see less
    rows = [f"/admin/reprocessing/parkedletter/{pk}/change/" for pk in letters]
    groups = FailureGroup.objects.values_list("pk", flat=True)
    rows += [f"/admin/reprocessing/failuregroup/{pk}/change/" for pk in groups]
    for address in (*rows, rows[0].replace("parked", "dead"), *addresses().values()):
        answer = client.get(address)
        assert answer.status_code < 500
        sung[address] = told(b"".join(answer))
    assert {where: found for where, found in sung.items() if found} == {}
    assert heard(caplog.records) == set()
    assert told([one.args for one in post.messages]) == set()


def steps(there: str, client: Client) -> Iterator[dict[str, Any]]:
    """What somebody sends to an address: nothing, nonsense, its own form as it is, and that form with a reason."""
    yield {"reason": "", "query": "text=kanari", "scope": "all", "kind": "csv", "do": "look", "no": "1", "seen": "x"}
    page = client.get(there)
    form = (page.context or {}).get("form")
    own = {name: form[name].value() for name in form.fields} if form else {}
    filled = {name: value for name, value in own.items() if value is not None} | {"reason": "mended"}
    for do in ("look", "fill") if "opened" in own else ():
        yield filled | {"do": do, "add": ["type", "task", "attribute:trace"]}
        yield filled | {"do": do, "add": ["attribute:trace"], "values": "1"}
    yield filled


def of_the_lot(letters: list[ParkedLetter]) -> Iterator[dict[str, Any]]:
    """What the lot's pages send: for a look, at once, of all that match, in both forms of a file."""
    some, to = decision.pack_messages(letters[:1]), letters[0].target_id
    yield {"pick": some, "scope": "ticked"}
    yield {"scope": "all", "query": ""}
    yield {"scope": "all", "query": "text=4111"}
    yield {"scope": "all", "query": "q=kanari&assigned=x"}
    for query, kind in (("", "csv"), (f"group={letters[0].group_id}", "jsonl"), ("text=4111", "csv")):
        asked = {"reason": "mended", "query": query, "token": str(uuid4()), "to": "ann", "kind": kind}
        asked |= {"opened": database_now().isoformat()}
        yield asked
        yield asked | {"bodies": "on", "originals": "on"}
    yield {"reason": "mended", "letters": some, "how": "at", "due": "2000-01-01T00:00", "to": "ann"}
    yield {"reason": "mended", "letters": some, "how": "to", "target": to, "to": "ann"}
    yield {"reason": "mended", "letters": some, "to": "ann"}


def actions(letter: ParkedLetter) -> Iterator[str]:
    its = {"run": Run.objects.earliest("pk").pk, "operation": operated().pk, "group": letter.group_id}
    its |= {"dlq": letter.dlq_id, "lane": letter.lane_id, "target": letter.target_id, "letter": letter.pk}
    its |= {"rule": Rule.objects.earliest("pk").pk, "breaker": Breaker.objects.earliest("pk").pk}
    its |= {"route": NotificationRoute.objects.create(destination="ops").pk}
    its |= {"mark": ManagedObject.objects.earliest("pk").pk, "approval": Approval.objects.earliest("pk").pk}
    its |= {"api_token": ApiToken.objects.earliest("pk").pk}
    for address in test_matrix.ACTIONS:
        if not address.startswith(("/admin/auth/", "/admin/django_celery_beat/")):
            yield address.format(**its)
    yield f"/admin/reprocessing/rule/add/?letter={letter.pk}"
    yield "/admin/reprocessing/auditentry/export"


@pytest.mark.soak
def test_nobody_gets_at_a_payload_by_sending_without_the_right(
    journey: Aviary, caplog: pytest.LogCaptureFixture, post: Post
) -> None:
    """Somebody who may do everything else does everything, in every wrong way, too."""
    furnished()
    client, user = logged_in(OPERATOR), User.objects.get()
    user.user_permissions.set(Permission.objects.exclude(codename="view_payload"))
    sung, statuses = dict[str, set[str]](), Counter[int]()
    for there in actions(ParkedLetter.objects.exclude(group=None).earliest("pk")):
        letters = list(ParkedLetter.objects.exclude(group=None).order_by("pk"))
        lots = of_the_lot(letters) if letters and re.search(r"/parkedletter/[a-z]+$", there) else iter(())
        for sent in (*steps(there, client), *lots):
            answer = client.post(there, sent, follow=True)
            statuses[answer.status_code] += 1
            sung[there] = sung.get(there, set()) | told(b"".join(answer)) | told(answer.headers)
    run_bulk_actions.run_bulk_action(BulkAction.objects.latest("pk").pk, seconds=9)
    kept = [
        *AuditEntry.objects.values("reason", "before", "after"),
        *BulkAction.objects.values(),
        *Rule.objects.values(),
    ]
    assert {where: found for where, found in sung.items() if found} == {}
    assert told(kept) == set()
    assert heard(caplog.records) == set()
    assert told([one.args for one in post.messages]) == set()
    assert statuses.keys() == {200, 403, 404}
    assert statuses[200] > 100


@pytest.mark.soak
def test_what_a_letter_holds_stays_covered_until_somebody_asks_and_is_shown_then(journey: Aviary) -> None:
    client = logged_in(EDITOR)
    for pk in ParkedLetter.objects.order_by("pk").values_list("pk", flat=True):
        address = f"/admin/reprocessing/parkedletter/{pk}"
        assert told(client.get(f"{address}/change/").content) == set()
        assert told(client.post(f"{address}/reveal").content) != set()


def test_no_command_tells_of_a_payload(journey: Aviary) -> None:
    for command in (("redrive_status",), ("redrive_status", "--json"), ("show_runs",), ("list_rules",)):
        out = io.StringIO()
        call_command(*command, stdout=out, stderr=out)
        assert out.getvalue()
        assert told(out.getvalue()) == set()


def test_an_error_tells_of_no_payload(
    journey: Aviary, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    letter = ParkedLetter.objects.earliest("pk")

    def breaks(*given: object, **named: object) -> None:
        body = bytes(letter.payload.body)
        raise RuntimeError(f"it broke with {len(body)} bytes in its hands")

    monkeypatch.setattr(message_page, "page", breaks)
    caplog.clear()
    answer = logged_in(EDITOR).get(f"/admin/reprocessing/parkedletter/{letter.pk}/change/")
    assert answer.status_code == 500
    assert told(answer.content) == set()
    assert "it broke with" in caplog.text
    assert heard(caplog.records) == set()


def test_the_canaries_do_sing(journey: Aviary) -> None:
    """They are where customers write; what is silent elsewhere is not silent by itself."""
    found: set[str] = set()
    for letter in Letter.objects.order_by("pk"):
        held = bytes(letter.payload.body), bytes(letter.payload.attributes)
        found |= {one for part in held for one in told(part) | told(decoded(part))}
    found |= {one for row in Report.objects.values_list("type", "message", "fingerprint") for one in told(row)}
    assert found == set(journey.all)


def decoded(text: bytes) -> bytes:
    """What is in the base64 of a text, once and again."""
    once = b" ".join(lenient(one) for one in re.findall(rb"[A-Za-z0-9+/]{12,}={0,2}", text))
    return once + b" ".join(lenient(one) for one in re.findall(rb"[A-Za-z0-9+/]{12,}={0,2}", once))


def lenient(text: bytes) -> bytes:
    try:
        return base64.b64decode(text)
    except ValueError:
        return b""
