from __future__ import annotations

import json
import re

import pytest
from django.test import Client

from reprocessing.admin.rules.conditions_field import EXAMPLES
from reprocessing.domain.lifecycle import LanePhase, LetterState
from reprocessing.domain.message.envelope import Attribute
from reprocessing.domain.message.redrive_attributes import MarkNames
from reprocessing.domain.routing.conditions import Condition
from reprocessing.models import AuditAct, AuditEntry, DeadLetterQueue, Letter, Rule
from reprocessing.pipeline.parking_lot import edit
from reprocessing.pipeline.parking_lot.edit import Alteration, SeenLetter
from reprocessing.store.routing import rule_changes, rules
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, parked, person, post
from tests.reprocessing.admin.site.preview_steps import previewed, saved, sheet
from tests.reprocessing.commands.stock import add_lane, add_letter

pytestmark = pytest.mark.django_db
ADD = "/admin/reprocessing/rule/add/"
MAKES = ("view_rule", "add_rule", "change_rule", "delete_rule", "view_letter")
BAD = '["body:kind equals bad"]'


@pytest.fixture
def ann() -> Client:
    return person("ann", *MAKES)


@pytest.fixture
def row() -> Rule:
    return _made()


def _edit(row: Rule) -> str:
    return f"/admin/reprocessing/rule/{row.pk}/edit"


def _made(**said: object) -> Rule:
    given = {"action": "hold", "conditions": ["body:kind equals bad"], "enabled": True, **said}
    rule_changes.save_rule("bad", given, by="bob", reason="a test")
    return Rule.objects.get()


def test_preview_shows_the_effect_and_saves_nothing() -> None:
    source, ann = dlq(), person("ann", *MAKES, "view_payload")
    add_letter(source, LetterState.CAPTURED, body=b'{"kind": "bad"}', planned=True)
    add_letter(source, LetterState.CAPTURED, body=b'{"kind": "good"}', planned=True)
    given = {"name": "bad", "conditions": BAD, "action": "quarantine", "position": 100, "do": "look"}
    page = post(ann, ADD, **sheet(ann, ADD) | given)
    assert "Of 2 messages captured in the last 7 days" in page
    assert "It would act on <strong>1</strong> message now waiting (1 captured)" in page
    assert not Rule.objects.exists()


def test_preview_says_which_messages_the_rule_does_not_decide_about() -> None:
    source, ann = dlq(), person("ann", *MAKES, "view_payload")
    for state, kind in (("delivered", "bad"), ("captured", "taken")):
        add_letter(source, LetterState(state), body=b'{"kind": "%s"}' % kind.encode(), planned=True)
    taken = {"action": "hold", "conditions": ["body:kind equals taken"], "enabled": True, "position": 1}
    rule_changes.save_rule("first", taken, by="bob", reason="a test")
    given = {"name": "bad", "conditions": '["body:kind in bad,taken"]', "action": "quarantine", "position": 100}
    page = post(ann, ADD, **sheet(ann, ADD) | given, do="look")
    assert "It would act on <strong>0</strong> messages now waiting." in page
    assert "<b>finished</b>1 already delivered (no effect)." in page
    assert "<b>decided by another rule</b>1 by the rule first, which comes first." in page


def test_after_preview_the_browser_shows_the_preview_or_the_refusal(ann: Client) -> None:
    assert '<form method="post" action="#preview"' in ann.get(ADD).content.decode()
    good = {"name": "bad", "conditions": BAD, "action": "hold"}
    found = []
    for sent in (good | {"do": "look"}, good | {"do": "write", "seen": "x", "reason": "why"}, {"do": "look"}):
        page = post(ann, ADD, **sheet(ann, ADD) | sent)
        found.append(re.findall(r'<(\w+)[^>]* id="preview" tabindex="-1"', page))
    assert found == [["h2"], ["p"], ["p"]]


def test_each_input_of_a_condition_has_a_visible_label(ann: Client) -> None:
    page = ann.get(ADD).content.decode()
    labels = re.findall(r'<label[^>]*><span>(\w+)</span><(\w+) [^>]*aria-label="(\w+) 1"', page)
    assert labels == [("Field", "input", "Field"), ("Operator", "select", "Operator"), ("Value", "input", "Value")]
    page = post(ann, ADD, **sheet(ann, ADD), show_as="text", shown_as="rows")
    assert '<label for="id_conditions">Conditions</label>' in page


@pytest.mark.soak
@pytest.mark.parametrize(
    ("condition", "is_shown"),
    [
        ("body:card regex ^4111", (False, True)), ("body:card exists", (True, True)),
        ("body:card == '4111' exists", (False, True)), ("attribute:card prefix 4", (False, True)),
        ("tenant in acme", (False, True)), ("task equals shop.ship", (True, True)), ("task prefix shop", (False, True)),
        ("type equals order.paid", (True, True)), ('type equals "card 4111"', (False, True)),
        ("dlq prefix shop", (True, True)),
    ],
)  # fmt: skip
def test_preview_of_payload_values_takes_the_permission(condition: str, is_shown: tuple[bool, bool]) -> None:
    add_letter(dlq(), LetterState.CAPTURED, body=b'{"card": "4111"}', planned=True)
    given = {"name": "bad", "conditions": json.dumps([condition]), "action": "quarantine", "do": "look"}
    people = (person("eve", *MAKES), person("ann", *MAKES, "view_payload"))
    pages = [post(one, ADD, **sheet(one, ADD) | given) for one in people]
    assert tuple("Of 1 message captured in the last 7 days" in page for page in pages) == is_shown
    told = tuple(
        "needs the permission to see payloads and, if fields are masked, to reveal masked values (" not in page
        for page in pages
    )
    assert told == is_shown
    saved(people[0], ADD, **given)
    assert Rule.objects.get().conditions == [condition]


@pytest.mark.soak
def test_preview_is_saved_with_user_and_reason() -> None:
    source, ann = dlq(), person("ann", *MAKES)
    given = {"name": "bad", "conditions": BAD, "action": "delay", "delay": "60", "dlq": source.dlq_id, "enabled": "on"}
    page = saved(ann, ADD, **given)
    assert "bad is added. It decides about each message before the message is sent." in page
    row = Rule.objects.get()
    assert (row.name, row.conditions, row.action, row.delay, row.dlq_id, row.enabled, row.created_by) == (
        "bad", ["body:kind equals bad"], "delay", 60.0, source.dlq_id, True, "ann",
    )  # fmt: skip
    assert list(AuditEntry.objects.values_list("act", "by", "reason", "rule")) == [("added", "ann", "a test", row.pk)]


@pytest.mark.soak
def test_a_rule_that_is_not_enabled_says_so_before_and_after_it_is_saved() -> None:
    ann, loud = person("ann", *MAKES), "decides nothing until you enable it."
    given = {"name": "bad", "conditions": BAD, "action": "hold", "position": 0}
    page = post(ann, ADD, **sheet(ann, ADD) | given, do="look")
    assert f"<b>warning</b>The rule will be added, but not enabled: it {loud}" in page
    assert "<td>Enabled</td><td><ins>no</ins></td>" in page
    assert "<td>Position</td><td><ins>0</ins></td>" in page
    assert 'value="write">Add, not enabled</button>' in page
    page = saved(ann, ADD, **given)
    banner = page.partition("<strong>Not enabled.</strong>")[2].partition("</div>")[0]
    there = f'href="/admin/reprocessing/rule/{Rule.objects.get().pk}/enable"'
    assert (f"bad is added, not enabled: it {loud}" in page, there in banner, page.count(there)) == (True, True, 1)
    change = f"/admin/reprocessing/rule/{Rule.objects.get().pk}/edit"
    page = post(ann, change, **sheet(ann, change) | given | {"action": "quarantine"}, do="look")
    assert f"<b>warning</b>The rule will be saved, but not enabled: it {loud}" in page
    page = post(ann, ADD, **sheet(ann, ADD) | given | {"name": "other", "enabled": "on"}, do="look")
    assert ("not enabled:" in page, 'value="write">Add</button>' in page) == (False, True)


def test_the_browser_checks_the_name_before_the_preview(ann: Client) -> None:
    page = ann.get(ADD).content.decode()
    assert r'pattern="[a-zA-Z0-9_\-]+"' in page
    assert "letters a to z, digits, - and _, no spaces." in page


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"conditions": '["a"\n "b"]'}, "Line 2, column 2: a comma or the closing ] is missing here: &quot;b&quot;]."),
        ({"conditions": '["a",]'}, "remove the comma after the last text."),
        ({"conditions": "['a']"}, "Line 1, column 2: expected a text in double quotes here: &#x27;a&#x27;]."),
        ({"conditions": '["a'}, "Line 1, column 2: a text has no closing quote here: &quot;a."),
        ({"conditions": '["a\\."]'}, "write a backslash in a text twice here: \\.&quot;]."),
        ({"conditions": '["a"] x'}, "there is more text after the closing ] here: x."),
        ({"conditions": '["a\n"]'}, "a text must end in the line in which it begins."),
        ({"conditions": '["tenant equals acme", 5]'}, "Condition 2 is not a text."),
        ({"conditions": '{"a": 1}'}, "This is not a list of texts"),
        ({"conditions": '["tenant equals acme", "colour is red"]'}, "Condition 2:"),
        ({"action": "delay"}, "is unclear"),
        ({"action": "divert"}, "is unclear"),
        ({"target": "nowhere"}, "No target is named &quot;nowhere&quot;"),
        ({"valid_from": "2026-02-01 00:00", "valid_until": "2026-01-01 00:00"}, "it ends before it begins"),
        ({"backoff_base": "5"}, "Give all three"),
        ({"name": "no name"}, "Use only the letters a to z, digits, - and _"),
        ({"valid_from": "2026-02-30"}, "Not a valid date and time."),
    ],
)
def test_invalid_values_are_explained(given: dict[str, str], why: str, ann: Client) -> None:
    usual = {"name": "bad", "conditions": BAD, "action": "hold", "do": "look"}
    assert why in post(ann, ADD, **sheet(ann, ADD) | usual | given)


@pytest.mark.soak
def test_every_example_is_valid_and_can_be_added() -> None:
    ann, filled = person("ann", *MAKES), ""
    ann.handler.enforce_csrf_checks = False
    for number, (said, _) in enumerate(EXAMPLES):
        assert str(Condition.parse(said))
        sent = {"name": "bad", "position": 7, "conditions": filled, "example": number}
        form = ann.post(ADD, sent).context["form"]
        filled = form["conditions"].value()
        assert (form["name"].value(), form["position"].value()) == ("bad", "7")
    assert json.loads(filled) == [said for said, _ in EXAMPLES]
    assert ann.post(ADD, {"conditions": filled, "example": "0"}).context["form"]["conditions"].value() == filled
    assert ann.post(ADD, {"conditions": "[1", "example": "99"}).context["form"]["conditions"].value() == "[1"
    assert not Rule.objects.exists()


@pytest.mark.soak
def test_example_is_added_to_an_existing_rule_with_permission() -> None:
    row, ann, ben = _made(), person("ann", *MAKES), person("ben", "view_rule", "add_rule")
    for one in (ann, ben):
        one.handler.enforce_csrf_checks = False
    sent = {**sheet(ann, _edit(row)), "example": "0"}
    found = json.loads(ann.post(_edit(row), sent).context["form"]["conditions"].value())
    assert found == [*row.conditions, EXAMPLES[0][0]]
    assert ben.post(_edit(row), sent).status_code == 403


@pytest.mark.soak
def test_changed_rule_evaluates_held_messages_again() -> None:
    row, ann, source = _made(), person("ann", *MAKES), dlq()
    lane = add_lane(source, LanePhase.HELD, why="rule bad holds it")
    add_letter(source, LetterState.WAITING, lane=lane, rule=row, route="hold", rulebook_version=rules.version())
    conditions = json.dumps(["body:kind equals worse"])
    assert "bad is changed." in saved(ann, _edit(row), conditions=conditions)
    row.refresh_from_db()
    lane.refresh_from_db()
    assert (row.conditions, row.enabled, lane.phase) == (["body:kind equals worse"], True, LanePhase.READY)


def test_second_editor_is_told_who_was_first(row: Rule, ann: Client) -> None:
    mine = previewed(ann, _edit(row), position=7)
    rule_changes.save_rule("bad", {"position": 5}, by="bob", reason="first")
    page = post(ann, _edit(row), **mine)
    assert "Somebody changed the rules after you opened this page: bob (&quot;first&quot;)." in page
    row.refresh_from_db()
    assert row.position == 5


def test_taken_name_is_refused(ann: Client) -> None:
    _made()
    page = post(ann, ADD, **sheet(ann, ADD) | {"name": "bad", "conditions": "[]", "action": "discard", "do": "look"})
    assert "A rule named &quot;bad&quot; exists already." in page


@pytest.mark.soak
def test_removal_takes_a_reason_and_unchanged_rules(row: Rule, ann: Client) -> None:
    there = f"/admin/reprocessing/rule/{row.pk}/remove"
    seen = ann.get(there).context["form"]["seen"].value()
    rule_changes.save_rule("bad", {"position": 5}, by="bob", reason="first")
    assert "Somebody changed the rules after you opened this page: bob" in post(ann, there, seen=seen, reason="x")
    seen = ann.get(there).context["form"]["seen"].value()
    assert "bad is removed." in post(ann, there, seen=seen, reason="mended")
    assert not Rule.objects.exists()
    assert AuditEntry.objects.filter(by="ann", reason="mended").count() == 1


TASK = json.dumps({
    "body": "W1tdLCB7fSwge31d", "content-type": "application/json", "content-encoding": "utf-8",
    "headers": {"task": "shop.tasks.ship", "id": "1"}, "properties": {"body_encoding": "base64", "delivery_info": {}},
}).encode()  # fmt: skip


def _from_letter(client: Client, letter: Letter, **sent: object) -> tuple[list[str], str]:
    """The conditions of the sheet that is made from a letter, once it was filled in so, and its page."""
    client.handler.enforce_csrf_checks = False
    there = f"{ADD}?letter={letter.pk}"
    page = client.post(there, {"do": "fill", **sent}) if sent else client.get(there)
    return json.loads(page.context["form"]["conditions"].value()), page.content.decode()


@pytest.mark.parametrize(
    ("body", "more"),
    [
        (b'{"kind": "order.paid"}', ["type equals order.paid"]), (TASK, ["task equals shop.tasks.ship"]),
        (b'{"kind": "card 4111"}', []), (b'{"kind": "17554ea1f00d0"}', []), (b'{"kind": 7}', []), (b"\xff", []),
    ],
)  # fmt: skip
def test_draft_has_message_type_and_task(body: bytes, more: list[str]) -> None:
    letter = parked(dlq(), body=body, attributes={"card": Attribute("String", "4111-canary")})
    DeadLetterQueue.objects.update(message_type="body:kind")
    conditions, page = _from_letter(person("ann", *MAKES), letter)
    assert (conditions, "Add a condition: a rule without conditions" in page) == (more, not more)
    told = ("card 4111", "4111-canary", 'value="attribute:card"', 'name="values"')
    assert [one in page for one in told] == [False, False, True, False]
    assert AuditEntry.objects.count() == 0


@pytest.mark.parametrize(
    ("selector", "masked", "expected"),
    [
        ("attribute:account", [], ["attribute:account equals 4711"]),
        ("body:order.id", [], ["body:order.id equals 4711"]), ("body:order.id", ["order.id"], []),
        ("body:other", [], []), ("system:MessageGroupId", [], []), ("none", [], []),
    ],
)  # fmt: skip
def test_draft_has_the_ordering_key_if_a_condition_can_read_it(
    selector: str, masked: list[str], expected: list[str]
) -> None:
    letter = parked(
        dlq(), key="4711", body=b'{"order": {"id": 4711}}', attributes={"account": Attribute("String", "4711")}
    )
    DeadLetterQueue.objects.update(ordering_key=selector, masked_fields=masked)
    ann = person("ann", *MAKES)
    conditions, page = _from_letter(ann, letter)
    assert (conditions, 'name="add" value="source"' in page) == (expected, True)
    says = f"Filled in from the message: the ordering key ({selector})." in page
    assert says == bool(expected)
    more, _ = _from_letter(ann, letter, add="source", conditions=json.dumps(conditions))
    assert more == [*expected, 'source equals "shop-dlq-source"']


def test_draft_reads_the_last_edit() -> None:
    letter = parked(dlq(), body=b'{"kind": "old"}')
    DeadLetterQueue.objects.update(message_type="body:kind")
    edit.edit_letter(
        letter.pk, SeenLetter(letter.finished_at, 0), Alteration(b'{"kind": "new"}', {}),  # type: ignore[arg-type]
        names=MarkNames(), by="bob", reason="a typo", replay=False,
    )  # fmt: skip
    assert _from_letter(person("ann", *MAKES), letter)[0] == ["type equals new"]


@pytest.mark.soak
def test_values_of_fields_take_the_permission_to_see_payloads() -> None:
    attributes = {"source": Attribute("String", "4111-canary"), "raw": Attribute("Binary", b"canary")}
    letter = parked(dlq(), body=b'{"kind": "card 4111-canary"}', attributes=attributes)
    DeadLetterQueue.objects.update(message_type="body:kind")
    add = ["type", "attribute:source", "attribute:raw", "attribute:none"]
    ann = person("ann", *MAKES)
    conditions, page = _from_letter(ann, letter, add=add, conditions='["dlq equals a"]', name="mine")
    assert conditions == ["dlq equals a", "type exists", "attribute:raw exists", "attribute:source exists"]
    assert (page.count("canary"), 'value="mine"' in page, AuditEntry.objects.count()) == (0, True, 0)
    assert ann.post(f"{ADD}?letter={letter.pk}", {"do": "fill", "add": add, "values": "on"}).status_code == 403
    ben = person("ben", *MAKES, "view_payload")
    conditions, _ = _from_letter(ben, letter, add=add, conditions="[]", values="on")
    assert conditions == [
        'type equals "card 4111-canary"', "attribute:raw exists", 'attribute:source equals "4111-canary"',
    ]  # fmt: skip
    review = AuditEntry.objects.get()
    assert (review.act, review.letter, review.by) == (AuditAct.REVEALED, letter, "ben")
    assert "canary" not in f"{review.before}{review.after}{review.reason}"
    there = f"{ADD}?letter={letter.pk}"
    saved(ben, there, name="paid", conditions=json.dumps(conditions), action="quarantine")
    assert Rule.objects.get().conditions == conditions


@pytest.mark.parametrize("text", ["x" * 2_000, "a\nb", "\u202e", '"'])
def test_unusable_value_becomes_an_exists_condition(text: str) -> None:
    letter = parked(dlq(), attributes={"note": Attribute("String", text)})
    ann = person("ann", *MAKES, "view_payload")
    conditions, _ = _from_letter(ann, letter, add="attribute:note", conditions="[]", values="on")
    (one,) = conditions
    assert Condition.parse(one).holds(text) is True


@pytest.mark.parametrize("broken", ["[", "{}", "[" * 100_000])
def test_invalid_conditions_stay_as_typed(broken: str, ann: Client) -> None:
    letter = parked(dlq(), attributes={"note": Attribute("String", "x")})
    ann.handler.enforce_csrf_checks = False
    page = ann.post(f"{ADD}?letter={letter.pk}", {"do": "fill", "add": "attribute:note", "conditions": broken})
    assert page.context["form"]["conditions"].value() == broken
