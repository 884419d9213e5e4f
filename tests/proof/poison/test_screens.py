"""Every payload on every screen: nothing raises, no list shows a payload, and what is shown is bounded."""

from __future__ import annotations

import html
import logging
import os
import re
import shlex
from collections.abc import Callable, Iterator
from datetime import timedelta
from http import HTTPStatus
from io import StringIO
from itertools import islice, product

import pytest
from django.core.management import call_command
from django.http import HttpResponse
from django.test import Client

from reprocessing.admin.messages.readable_bytes import visible
from reprocessing.models import Letter, Rule
from reprocessing.pipeline.routing import preview
from reprocessing.store.ordering import lanes
from reprocessing.store.routing import rules
from tests.proof.ledger import Ledger
from tests.proof.names import SCREENS, begun
from tests.proof.poison.corpus import CORPUS
from tests.proof.poison.corpus import Payload as Odd
from tests.proof.poison.secrecy import quoted, values_of
from tests.proof.poison.test_everywhere import LAYER
from tests.reprocessing.admin.parking_lot.parked_messages import LOOKS, person, token
from tests.reprocessing.pipeline.bench import Workbench
from tests.reprocessing.pipeline.rulings import rule

pytestmark = [pytest.mark.prove, pytest.mark.django_db(transaction=True)]

#: Characters of a page with ten attributes and a body, each of which may be shown as ten characters a one.
LONGEST_PAGE, LONGEST_LINE = 3_000_000, 3_000
#: Of a form with all of a body of one MiB, each of whose characters HTML may write as six (`&quot;`).
LONGEST_FORM = 6 * 2**20 + 100_000
TOGETHER = 50
_RAW = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]")


@pytest.fixture
def everybody() -> list[Client]:
    return [person("ben", *LOOKS, "view_payload", "edit_parkedletter"), person("ann", *LOOKS)]


def test_every_payload_is_looked_at_on_every_screen(
    everybody: list[Client],
    caplog: pytest.LogCaptureFixture,
    ledger: Ledger,
    is_time: Callable[[], bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not os.environ.get("POISON", SCREENS).startswith(SCREENS):
        pytest.skip("POISON asks for a batch")
    monkeypatch.setattr("reprocessing.pipeline.capture.peek.WAIT", 0)
    rule("preview", "quarantine", "body:order.id equals nobody-has-this", "task:args equals x", enabled=False)
    broken: list[str] = []
    done = 0
    for lot in _lots(ledger):
        if not is_time():
            break
        with caplog.at_level(logging.INFO):
            caplog.clear()
            found = _screens(lot, everybody)
            for one in lot:
                found[one.name] += ["quoted in a log"] if quoted(caplog.text, one) else []
        for name, why in found.items():
            ledger.note(
                LAYER,
                f"{SCREENS}{name}",
                passed=not why,
                why="; ".join(why) and f"{'; '.join(why)}. Again: {_again(name)}",
            )
            broken += [f"{name}: {each}" for each in why]
            for each in why:
                print(f"  {name}: {each}\n    again: {_again(name)}", flush=True)  # noqa: T201
        done += len(lot)
        print(f"screens: {len(lot)} payloads, {done} in all, {len(broken)} failed", flush=True)  # noqa: T201
    assert broken == []


def _again(name: str) -> str:
    return f"POISON={shlex.quote(SCREENS + name)} make prove LAYER={LAYER}"


def _lots(ledger: Ledger) -> Iterator[list[Odd]]:
    some = {f"{SCREENS}{one.name}": one for one in CORPUS.values()}
    wanted = begun(os.environ.get("POISON", SCREENS), some)
    left = (some[name] for name in ledger.turns(LAYER, wanted))
    while lot := list(islice(left, TOGETHER)):
        yield lot


def _screens(lot: list[Odd], everybody: list[Client]) -> dict[str, list[str]]:
    """A dlq of these payloads, whose target are Celery workers: what is wrong with any screen that shows one."""
    bench = Workbench(
        fields={"ordering_key": "attribute:key", "missing_key": "lane", "idempotency_key": "message-id"},
        target_fields={"kind": "celery"},
    )
    ids = {bench.sqs.send_message(QueueUrl=bench.dlq_url, **one.entry())["MessageId"]: one for one in lot}
    found: dict[str, list[str]] = {one.name: [] for one in lot}
    found[lot[0].name] += _peeked(bench, len(lot))
    bench.capture()
    bench.enlist()
    lists = "".join(_lists(bench, everybody[0], len(lot)))
    keys = Letter.objects.filter(dlq=bench.dlq).exclude(ordering_key=None).values_list("ordering_key", flat=True)
    for key in keys:  # it is there to be seen
        lists = lists.replace(visible(key or "")[:60], "") if key else lists
    for letter in Letter.objects.filter(dlq=bench.dlq):
        one = ids[letter.message_id]
        found[one.name] += [f"it is quoted in a list: {words!r}"] if (words := quoted(lists, one)) else []
        found[one.name] += _of_letter(letter, one, everybody)
    assert Letter.objects.filter(dlq=bench.dlq).count() == len(lot)
    return found


def _peeked(bench: Workbench, many: int) -> list[str]:
    limit = ("--limit", str(2 * many))
    told = [_command("peek_dlq", bench.name, "--confirm", *limit, *more) for more in ((), ("--bodies",), ("--json",))]
    lines = [line for one in told[:2] for line in one.split("\n")]
    wrong = ["peek_dlq shows what a terminal obeys"] if any(_RAW.search(one) for one in told) else []
    return wrong + [f"peek_dlq has a line of {len(one)} characters" for one in lines if len(one) > LONGEST_LINE]


def _lists(bench: Workbench, client: Client, many: int) -> Iterator[str]:
    since = lanes.database_now() - timedelta(days=1)
    some = [rules.bind(one) for one in Rule.objects.all()]
    seen = preview.letters(some, since=since, dlq=bench.dlq.pk)
    assert seen.letters == many
    yield from (one.last_error for one in seen.shares)
    yield _command("test_rules", "--dlq", bench.name, "--rule", "preview")
    yield _command("redrive_status", bench.name)
    yield from values_of(_command("redrive_status", bench.name, "--json"))
    for desk in ("parkedletter", "letter"):
        answer = client.get(f"/admin/reprocessing/{desk}/?dlq__id__exact={bench.dlq.pk}")
        assert answer.status_code == 200
        yield html.unescape(answer.content.decode())


def _of_letter(letter: Letter, one: Odd, everybody: list[Client]) -> Iterator[str]:
    told = [_command("redrive_status", "--message", letter.message_id, *more) for more in ((), ("--json",))]
    if words := quoted([told[0], *values_of(told[1])], one):
        yield f"redrive_status --message quotes it: {words!r}"
    if max(map(len, told)) > LONGEST_LINE or any(_RAW.search(each) for each in told):
        yield "redrive_status --message is too long, or shows what a terminal obeys"
    desks = ("parkedletter", "letter") if letter.state == "parked" else ("letter",)
    for desk, client in product(desks, everybody):
        there = f"/admin/reprocessing/{desk}/{letter.pk}"
        answer = _sent(client, f"{there}/reveal") if client is everybody[0] else client.get(f"{there}/change/")
        page = answer.content.decode()
        if answer.status_code != HTTPStatus.OK or len(page) > LONGEST_PAGE:
            yield f"its page ({desk}) answers {answer.status_code}, {len(page)} characters"
        if _RAW.search(page):
            yield f"its page ({desk}) has a character that is not seen"
        if "<script>alert(" in page or "<img src=x" in page or "<svg/onload" in page:
            yield f"its page ({desk}) would run it"
        if client is everybody[1] and (words := quoted(html.unescape(page), one)) and words not in _keys(letter):
            yield f"its page ({desk}) quotes it to who may not see it: {words!r}"
    yield from _edited(letter, everybody[0])
    body = _sent(everybody[0], f"/admin/reprocessing/letter/{letter.pk}/body")
    if body.content != one.body.encode():
        yield "its body is handed out otherwise than it was"


def _edited(letter: Letter, client: Client) -> Iterator[str]:
    """What is wrong with the form of a parked letter; of others there is none."""
    if letter.state != "parked":
        return
    answer = _sent(client, f"/admin/reprocessing/parkedletter/{letter.pk}/edit", open="1")
    page = answer.content.decode()
    if answer.status_code != HTTPStatus.OK or len(page) > LONGEST_FORM:
        yield f"its form answers {answer.status_code}, {len(page)} characters"
    if "<script>alert(" in page or "<img src=x" in page or "<svg/onload" in page:
        yield "its form would run it"


def _sent(client: Client, address: str, **values: str) -> HttpResponse:
    given = {"csrfmiddlewaretoken": token(client, "/admin/password_change/")} | values
    answer = client.post(address, given)
    assert isinstance(answer, HttpResponse)
    return answer


def _keys(letter: Letter) -> str:
    return f"{letter.ordering_key} {letter.sequence} {letter.detail}"


def _command(*words: str) -> str:
    out = StringIO()
    call_command(*words, stdout=out)
    return out.getvalue()
