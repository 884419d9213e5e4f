from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import count
from types import SimpleNamespace

import pytest
from django.test import Client

from reprocessing.admin.rules import rule_effect
from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.routing.first_match import CONDITIONS
from reprocessing.models import Rule
from reprocessing.store.routing import rules
from tests.reprocessing.admin.parking_lot.parked_messages import LOOKS, dlq, parked, person
from tests.reprocessing.commands.stock import add_letter

#: A bomb takes minutes.
pytestmark = [pytest.mark.django_db, pytest.mark.soak, pytest.mark.timeout(120)]

RULES = "/admin/reprocessing/rule/add/"
LOT = "/admin/reprocessing/parkedletter/"
MAKES = ("view_rule", "add_rule", "change_rule", "view_letter")
BODY = json.dumps({"a": [list(range(90))] * 90}).encode()
#: Of what may be asked, what costs much: most of the steps that one question may take, and another one each time.
COSTLY = [f"body:a[*][*]|[{number}] exists" for number in range(CONDITIONS)]

HOSTILE = {
    "a regex that repeats repeats": '["type regex (((a{1,99}){1,99}){1,99}){1,99}"]',
    "a regex that never closes": json.dumps(["type regex " + "(" * 500]),
    "a long regex": json.dumps(["type regex " + "a?" * 400]),
    "brackets in an expression": json.dumps(["body:" + "[" * 250 + " exists"]),
    "an expression in an expression": json.dumps(["body:" + "a.b(" * 60 + ")" * 60 + " exists"]),
    "a long expression": json.dumps(["body:" + "a|" * 20_000 + "a exists"]),
    "nested lists": "[" * 190_000,
    "a long number": "[1" + "0" * 100_000 + "]",
    "a megabyte": json.dumps(["type equals " + "x" * 2**20]),
    "many conditions": json.dumps(["type exists"] * (CONDITIONS + 1)),
    "very many conditions": json.dumps(["type exists"] * 10_000),
    "a NUL": '["type equals a\0b"]',
    "a NUL in JSON": '["type equals a\\u0000b"]',
    "half a pair": '["type equals \\ud800"]',
    "half a pair in a name": '["attribute:\\udfff exists"]',
    "half a pair in an expression": '["body:a\\ud800 exists"]',
    "text turned round": '["attribute:\u202eabc exists"]',
    "a quote that never ends": json.dumps(['type equals "' + "\\" * 999]),
    "many regexes": json.dumps(["type regex " + "(a|b){9}" * 9] * 2_000),
    "operators alone": json.dumps(["body:" + " exists" * 20_000]),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a rule that was to be looked at, and the seconds of work that it took."""

    code: int
    page: str
    words: str


def _opened() -> dict[str, str]:
    return {"opened": str(rules.version())}


def sent(client: Client, **given: object) -> Answer:
    client.handler.enforce_csrf_checks = False
    answer = client.post(RULES, {"name": "bad", "action": "hold", "position": 100, "do": "look", **_opened(), **given})
    said = [one for errors in answer.context["form"].errors.values() for one in errors]
    return Answer(answer.status_code, answer.content.decode(), " ".join([answer.context["refused"], *said]).strip())


@pytest.mark.parametrize("name", HOSTILE)
def test_conditions_that_cannot_be_asked_are_refused_in_a_sentence(name: str) -> None:
    add_letter(dlq(), LetterState.CAPTURED, body=BODY, planned=True)
    answer = sent(person("ann", *MAKES), conditions=HOSTILE[name])
    assert (answer.code, Rule.objects.count()) == (200, 0)
    assert re.fullmatch(r"[A-Z][^\0\ud800-\udfff]{10,900}\.", answer.words), answer.words


@pytest.mark.parametrize(
    "given",
    [
        {"position": "9" * 5_000}, {"delay": "1e999", "action": "delay"}, {"delay": "nan", "action": "delay"},
        {"delay": "9" * 100_000, "action": "delay"}, {"dlq": "9" * 30}, {"dlq": "x"}, {"rate_class": "\0"},
        {"target": "x" * 10_000, "action": "divert"}, {"target": "\0", "action": "divert"},
        {"target": "https://[", "action": "divert"}, {"target": "https://sqs:99999999/0/q", "action": "divert"},
        {"valid_from": "9999-12-31T23:59:59-23:59"}, {"valid_until": "0001-01-01 00:00"}, {"name": "x" * 2**20},
        {"backoff_base": "inf"}, {"backoff_jitter": "\u202e"}, {"opened": "\0"}, {"action": "[" * 9_999},
    ],
    ids=str,
)  # fmt: skip
def test_no_field_of_a_rule_breaks_its_sheet(given: dict[str, str]) -> None:
    answer = sent(person("ann", *MAKES), **{"conditions": "[]", **given})
    assert (answer.code, Rule.objects.count()) == (200, 0)
    previewed = re.search("(The values cannot be saved|Preview|Nothing would change)</h2>", answer.page)
    assert ("Nothing was saved." in answer.page) is not (previewed is not None)


def test_a_look_ends_when_a_person_has_waited_long_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    source = dlq()
    for _ in range(30):
        add_letter(source, LetterState.CAPTURED, body=BODY, planned=True)
    monkeypatch.setattr(rule_effect, "_MAX_SECONDS", 3)
    monkeypatch.setattr(rule_effect, "time", SimpleNamespace(monotonic=count().__next__))  # a look at it, a second
    answer = sent(person("ann", *MAKES, "view_payload"), conditions=json.dumps(COSTLY))
    assert (answer.code, answer.words) == (200, "")
    asked = re.search(r"Of ([0-9]+) messages? captured in the last 7 days \(the newest;", answer.page)
    assert asked
    assert 1 <= int(asked[1]) < 30


@pytest.mark.parametrize("name", ["q", "key", "text", "assigned", "dlq", "group", "reason", "state", "sent_after",
                                  "parked_before", "after", "rule", "nonsense"])  # fmt: skip
def test_no_filter_of_the_lot_breaks_its_page(name: str) -> None:
    parked(dlq(), key="a", body=BODY)
    client = person("ann", *LOOKS, "view_payload")
    for text in (
        "(((a{1,99}){1,99}){1,99}",
        "\0",
        "\u202e<script>",
        "x" * 2**20,
        "9" * 1_000,
        "0001-01-01T00:00+23:59",
    ):
        answer = client.get(LOT, {name: text})
        assert answer.status_code == 200, text[:30]
    assert client.get(f"{LOT}?{name}=%ED%A0%80%FF").status_code == 200
