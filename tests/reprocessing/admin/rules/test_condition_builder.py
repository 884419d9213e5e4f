"""Conditions are built by rows, without scripts; rows and text become each other without loss."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from reprocessing.admin.rules import rule_effect
from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.message.envelope import Attribute
from reprocessing.domain.payloads.sealing import Part
from reprocessing.models import AuditEntry, DeadLetterQueue, Letter, Rule
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.payloads import content
from reprocessing.store.routing import rule_changes
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, parked, person
from tests.reprocessing.commands.stock import add_letter
from tests.reprocessing.payload_rings import Rings, encrypted, rings  # noqa: F401  fixtures

pytestmark = pytest.mark.django_db
ADD = "/admin/reprocessing/rule/add/"
MAKES = ("view_rule", "add_rule", "change_rule", "view_letter")


@pytest.fixture
def ann() -> Client:
    found = person("ann", *MAKES, "view_payload")
    found.handler.enforce_csrf_checks = False
    return found


def shown(page: Any) -> dict[str, Any]:  # noqa: ANN401  Django's answer
    """What a browser would send of a page, without a button."""
    form, builder = page.context["form"], page.context["builder"]
    given = {name: form[name].value() for name in form.fields if name != "conditions"}
    sent = {name: value for name, value in given.items() if value not in (None, False)}
    sent["shown_as"] = builder.shown_as
    if page.context["offers"].mark:
        sent["shown_values"] = page.context["offers"].mark
    if builder.shown_as == "text":
        return sent | {"conditions": form["conditions"].value()}
    for number, row in enumerate(builder.rows):
        if row.parts is None:
            sent[f"row_{number}_text"] = row.text
        else:
            parts = {
                "field": row.parts.field,
                "operator": row.parts.operator,
                "value": row.parts.value,
                "was": row.text,
            }
            sent |= {f"row_{number}_{name}": value for name, value in parts.items()}
    return sent


def pressed(client: Client, address: str, page: Any, **more: Any) -> Any:  # noqa: ANN401  as above
    return client.post(address, {**shown(page), **more})


def of(page: Any) -> list[str]:  # noqa: ANN401  as above
    """The conditions on a page."""
    found = json.loads(page.context["builder"].text)
    assert isinstance(found, list)
    return found


def customers() -> DeadLetterQueue:
    source = dlq("shop")
    for customer in ("acme", "acme", "globex"):
        add_letter(source, LetterState.CAPTURED, body=json.dumps({"customer": customer, "n": 1}).encode(), planned=True)
    return source.dlq


@pytest.mark.soak
def test_a_rule_for_one_customer_is_built_without_typing_json_and_without_scripts(ann: Client) -> None:
    queue = customers()
    page = ann.get(ADD)
    assert "Choose a dead-letter queue: then the fields" not in page.content.decode()  # ann sees all DLQs
    page = pressed(ann, ADD, page, dlq=queue.pk, name="acme-only", action="quarantine", show_values="1")
    (field,) = [field for field in page.context["offers"].found.fields if field.name == "body:customer"]
    assert [(value.text, value.count) for value in field.values] == [("acme", 2), ("globex", 1)]
    page = pressed(ann, ADD, page, use=field.values[0].condition)
    assert of(page) == ["body:customer equals acme"]
    assert "It would act on <strong>2</strong> messages now waiting (2 captured)" in page.content.decode()
    page = pressed(ann, ADD, page, do="look", enabled="on")
    look = page.context["look"]
    ann.post(ADD, {**shown(page), "do": "write", "seen": look.seen, "reason": "acme sends rubbish"})
    rule = Rule.objects.get()
    assert (rule.name, rule.conditions, rule.action, rule.dlq_id, rule.enabled) == (
        "acme-only", ["body:customer equals acme"], "quarantine", queue.pk, True,
    )  # fmt: skip


def test_rows_are_added_and_removed_and_nothing_else_changes(ann: Client) -> None:
    page = pressed(ann, ADD, ann.get(ADD), name="mine", position="7", reason="why", add_row="1")
    page = pressed(ann, ADD, page, row_0_field="tenant", row_0_operator="in", row_0_value="acme, globex", add_row="1")
    page = pressed(ann, ADD, page, row_1_field="type", row_1_operator="exists", row_1_value="", add_row="1")
    assert of(page) == ["tenant in acme,globex", "type exists"]
    assert len(page.context["builder"].rows) == 3
    page = pressed(ann, ADD, page, remove_row="0")
    assert of(page) == ["type exists"]
    form = page.context["form"]
    assert (form["name"].value(), form["position"].value(), form["reason"].value()) == ("mine", "7", "why")


def test_the_removed_row_is_the_one_whose_button_was_pressed_also_beside_empty_rows(ann: Client) -> None:
    sent = {"shown_as": "rows"}
    for number, value in enumerate(("a", "", "c")):
        sent |= {
            f"row_{number}_field": "tenant" if value else "",
            f"row_{number}_operator": "equals",
            f"row_{number}_value": value,
        }
    assert of(ann.post(ADD, {**sent, "remove_row": "2"})) == ["tenant equals a"]
    assert of(ann.post(ADD, {**sent, "remove_row": "0"})) == ["tenant equals c"]
    assert of(ann.post(ADD, {**sent, "remove_row": "99"})) == ["tenant equals a", "tenant equals c"]


CONDITIONS = [
    'tenant   equals  "acme"', 'type in ["a,b", "c"]', 'tenant equals ""', 'body:"<b>" prefix " x"', "task exists",
    "body:a[?b=='x in y'] | [0] exists", "tenant regex ^a", "type in order.paid,order.sent",
]  # fmt: skip


@pytest.mark.soak
def test_rows_and_text_become_each_other_without_loss(ann: Client) -> None:
    rule_changes.save_rule("mine", {"action": "hold", "conditions": CONDITIONS}, by="bob", reason="a test")
    address = f"/admin/reprocessing/rule/{Rule.objects.get().pk}/edit"
    page = ann.get(address)
    assert page.context["builder"].shown_as == "rows"
    assert "This condition stays a text: a row cannot compare with an empty text." in page.content.decode()
    for _ in range(2):
        page = pressed(ann, address, page, show_as="text")
        assert json.loads(page.context["form"]["conditions"].value()) == CONDITIONS
        page = pressed(ann, address, page, show_as="rows")
        assert of(page) == CONDITIONS
    page = pressed(ann, address, page, do="look")
    assert "Nothing would change" in page.content.decode()


@pytest.mark.parametrize(
    "text",
    ["[", "{}", '["tenant exists", 5]', "[null]", "[" * 5_000, "true"],
    ids=["open", "map", "number", "null", "deep", "true"],
)
def test_text_that_is_no_list_of_texts_stays_text_and_says_why(text: str, ann: Client) -> None:
    page = ann.post(ADD, {"shown_as": "text", "conditions": text, "show_as": "rows"})
    assert (page.context["builder"].shown_as, page.context["form"]["conditions"].value()) == ("text", text)
    assert "The text cannot be shown as rows." in page.content.decode()


def test_an_invalid_condition_of_the_text_becomes_a_row_of_text_with_its_error_beside_it(ann: Client) -> None:
    page = ann.post(ADD, {"shown_as": "text", "conditions": '["tenant exists", "colour is red"]', "show_as": "rows"})
    assert [row.parts is None for row in page.context["builder"].rows] == [False, True]
    page = pressed(ann, ADD, page, name="mine", action="hold", do="look")
    rows = page.context["builder"].rows
    assert [bool(row.error) for row in rows] == [False, True]
    assert page.context["form"].errors["conditions"] == ["Correct the marked conditions."]
    page = pressed(ann, ADD, page, row_1_text="type exists", show_as="text")
    assert json.loads(page.context["form"]["conditions"].value()) == ["tenant exists", "type exists"]


def test_each_error_is_beside_its_row_and_the_rows_stay_as_typed(ann: Client) -> None:
    sent = {"shown_as": "rows", "name": "mine", "action": "hold", "do": "look", **shown(ann.get(ADD))}
    typed = [
        ("body:", "equals", "x"),
        ("tenant", "equals", ""),
        ("type", "exists", ""),
        ("", "equals", "lost"),
        ("tenant", "regex", "("),
    ]
    for number, row in enumerate(typed):
        sent |= {f"row_{number}_{name}": value for name, value in zip(("field", "operator", "value"), row, strict=True)}
    page = ann.post(ADD, {**sent, "name": "mine"})
    rows = page.context["builder"].rows
    assert [(row.parts.field, row.parts.operator, row.parts.value) for row in rows] == typed
    assert [bool(row.error) for row in rows] == [True, True, False, True, True]
    assert "Enter a value." in page.content.decode()
    assert "looked at" not in page.content.decode()
    assert not Rule.objects.exists()


def test_an_example_and_fields_of_a_message_are_added_to_rows(ann: Client) -> None:
    letter = parked(dlq(), attributes={"customer": Attribute("String", "acme")})
    there = f"{ADD}?letter={letter.pk}"
    page = pressed(ann, there, ann.get(there), do="fill", add="attribute:customer", values="on")
    assert page.context["builder"].shown_as == "rows"
    assert of(page) == ['attribute:customer equals "acme"']
    assert of(pressed(ann, there, page, example="0"))[-1] == "tenant equals acme"


@pytest.mark.soak
def test_a_rule_with_more_than_32_rows_is_refused_with_a_sentence(ann: Client) -> None:
    sent = {"shown_as": "rows", "name": "mine", "action": "hold", "do": "look", "position": "1"}
    for number in range(300):
        sent |= {f"row_{number}_field": "tenant", f"row_{number}_operator": "exists", f"row_{number}_value": ""}
    page = ann.post(ADD, sent)
    assert "conditions, and 32 are allowed" in page.content.decode()
    assert len(page.content) < 120 * 1024


def test_live_part_shows_the_effect_of_rows_that_are_complete(ann: Client) -> None:
    queue = customers()
    sent = shown(ann.get(ADD)) | {"dlq": queue.pk, "action": "divert", "do": "live"}
    row = {"row_0_field": "body:customer", "row_0_operator": "equals", "row_0_value": "acme"}
    part = ann.post(ADD, {**sent, **row}).content.decode()
    assert "It would act on <strong>2</strong> messages now waiting" in part
    assert "<html" not in part
    part = ann.post(ADD, {**sent, **row, "row_0_operator": "regex", "row_0_value": "("}).content.decode()
    assert "Condition 1:" in part
    assert "Add a condition to see what it matches." in ann.post(ADD, sent).content.decode()
    assert not Rule.objects.exists()


def test_live_part_says_that_older_messages_are_not_evaluated(ann: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = customers()  # acme, acme, globex
    row = {"row_0_field": "body:customer", "row_0_operator": "equals", "row_0_value": "acme"}
    sent = {**shown(ann.get(ADD)), "dlq": queue.pk, "action": "hold", "do": "live", **row}
    more = "The older messages are not evaluated here. Press Preview: it evaluates up to 20,000 messages."
    said = []
    for few, counted in ((200, 2_000), (1, 2_000), (1, 2), (2, 2_000)):
        monkeypatch.setattr(rule_effect, "FEW", few)
        monkeypatch.setattr(rule_effect, "COUNTED", counted)
        part = " ".join(ann.post(ADD, sent).content.decode().split())
        head = part.partition(" captured in the last 7 days:")[0].rpartition("<p>")[2]
        sample = re.findall(f'found-([a-z]+)"><b>not evaluated</b>{more}', part)
        said.append((head, "It would act on <strong>0</strong> messages now waiting." in part, sample))
    assert said == [
        ("Of 3 messages", False, []), ("Of the newest 1 of 3 messages", True, ["warn"]),
        ("Of the newest 1 of more than 2 messages", True, ["warn"]), ("Of the newest 2 of 3 messages", False, ["note"]),
    ]  # fmt: skip


def test_live_part_says_that_somebody_changed_the_rules(ann: Client) -> None:
    page = ann.get(ADD)
    rule_changes.save_rule("other", {"action": "hold", "conditions": []}, by="bob", reason="first")
    for button in ({"do": "live"}, {"add_row": "1"}):
        text = pressed(ann, ADD, page, **button).content.decode()
        assert "This page is out of date." in text
        assert "bob (&quot;first&quot;)" in text
    again = pressed(ann, ADD, pressed(ann, ADD, page, add_row="1"), name="mine", action="hold", do="look")
    assert "Somebody changed the rules after you opened this page" in again.content.decode()


def test_a_removed_rule_is_not_edited_any_more(ann: Client) -> None:
    rule_changes.save_rule("mine", {"action": "hold", "conditions": []}, by="bob", reason="a test")
    rule = Rule.objects.get()
    address = f"/admin/reprocessing/rule/{rule.pk}/edit"
    page = ann.get(address)
    rule_changes.remove(rule.pk, by="bob", reason="over")
    rule_changes.erase(rule.pk)
    assert pressed(ann, address, page, add_row="1").status_code == 404


def test_the_focus_is_in_the_value_of_a_condition_that_was_added_for_a_field(ann: Client) -> None:
    page = ann.post(ADD, {"dlq": customers().pk, "update": "1"})
    [button] = re.findall(r'<button[^>]* value="body:customer" formaction="([^"]*)"', page.content.decode())
    page = pressed(ann, ADD, page, use="body:customer").content.decode()
    focused = r'<input type="text" id="([^"]*)" name="(row_[0-9]_value)"'
    assert (button, re.findall(focused, page)) == ("#new-value", [("new-value", "row_0_value")])
    assert ('<p class="quiet">Enter a value.</p>' in page, "is not a condition" in page) == (True, False)


@pytest.mark.parametrize(
    ("operator", "value", "said"),
    [
        ("equals", "", "Enter a value."), ("in", "", "Enter a value."), ("equals", "acme", ""), ("exists", "", ""),
        ("regex", "(", "is not a condition"),
    ],
)  # fmt: skip
def test_the_live_effect_of_a_row_without_a_value_asks_for_the_value(
    operator: str, value: str, said: str, ann: Client
) -> None:
    row = {"row_0_field": "body:customer", "row_0_operator": operator, "row_0_value": value}
    answer = ann.post(ADD, {"dlq": customers().pk, "shown_as": "rows", "do": "live", **row})
    problem = answer.context["effect"].get("problem", "")
    assert (said in problem, bool(problem)) == (True, bool(said))
    assert (problem == "Enter a value.") is (said == "Enter a value.")


def offered(page: Any) -> dict[str, list[str]]:  # noqa: ANN401  Django's answer
    return {field.name: [value.text for value in field.values] for field in page.context["offers"].found.fields}


def test_values_take_the_permission_and_are_recorded_once_for_each_message(ann: Client) -> None:
    queue = customers()
    eve = person("eve", *MAKES)
    eve.handler.enforce_csrf_checks = False
    page = eve.post(ADD, {"dlq": queue.pk, "update": "1"})
    assert offered(page) == {"source": ["shop-source"], "body:customer": [], "body:n": []}
    assert eve.post(ADD, {"dlq": queue.pk, "show_values": "1"}).status_code == 403
    assert AuditEntry.objects.count() == 0
    page = ann.post(ADD, {"dlq": queue.pk, "show_values": "1"})
    assert offered(page)["body:customer"] == ["acme", "globex"]
    entries = list(AuditEntry.objects.values_list("act", "by", "letter", "dlq"))
    assert sorted(entries) == sorted(
        ("revealed", "ann", key, queue.pk) for key in Letter.objects.values_list("pk", flat=True)
    )
    add_letter(queue.sources.get(), LetterState.CAPTURED, body=b'{"customer": "later"}', planned=True)
    page = pressed(ann, ADD, page, dlq=queue.pk, add_row="1")
    assert offered(page)["body:customer"] == ["acme", "globex"]  # the page shows what was recorded
    assert AuditEntry.objects.count() == 3
    assert "acme" not in str(list(AuditEntry.objects.values_list("before", "after", "reason")))


@pytest.mark.soak
def test_a_mark_is_of_one_person_and_one_dlq(ann: Client) -> None:
    queue, other = customers(), dlq("other")
    mark = ann.post(ADD, {"dlq": queue.pk, "show_values": "1"}).context["offers"].mark
    ben, eve = person("ben", *MAKES, "view_payload"), person("eve", *MAKES)
    for one in (ben, eve):
        one.handler.enforce_csrf_checks = False
        assert offered(one.post(ADD, {"dlq": queue.pk, "shown_values": mark, "update": "1"}))["body:customer"] == []
    for sent in (mark[:-1] + "x", "x", json.dumps([1, queue.pk, 0, 99])):
        assert offered(ann.post(ADD, {"dlq": queue.pk, "shown_values": sent, "update": "1"}))["body:customer"] == []
    add_letter(other, LetterState.CAPTURED, body=b'{"customer": "canary"}', planned=True)
    page = ann.post(ADD, {"dlq": other.dlq_id, "shown_values": mark, "update": "1"})
    assert offered(page) == {"source": ["other-source"], "body:customer": []}


def test_masked_values_are_not_offered_and_have_no_live_effect(ann: Client) -> None:
    queue = customers()
    DeadLetterQueue.objects.update(masked_fields=["customer"])
    page = ann.post(ADD, {"dlq": queue.pk, "show_values": "1"})
    assert (offered(page)["body:customer"], offered(page)["body:n"]) == ([], ["1"])
    row = {"row_0_field": "body:customer", "row_0_operator": "equals", "row_0_value": "acme"}
    part = pressed(ann, ADD, page, dlq=queue.pk, do="live", **row).content.decode()
    assert "It would act on" not in part
    assert "reveal masked values" in part


def test_nothing_of_encrypted_messages_is_offered_before_the_view_is_recorded(ann: Client, encrypted: Rings) -> None:  # noqa: F811
    source = dlq("shop")
    queue, sealer = source.dlq, content.sealer_of(source.dlq_id, database_now().date())
    for number, customer in enumerate(("acme", "acme", "globex")):
        body = sealer.bytes(json.dumps({"customer": customer}).encode(), Part.BODY, of=f"m-{number}")
        add_letter(source, LetterState.CAPTURED, body=body, message_id=f"m-{number}", planned=True)
    page = ann.post(ADD, {"dlq": queue.pk, "update": "1"})
    assert (offered(page), page.context["offers"].messages) == ({}, 0)
    page = ann.post(ADD, {"dlq": queue.pk, "show_values": "1"})
    assert offered(page)["body:customer"] == ["acme", "globex"]
    assert offered(pressed(ann, ADD, page, dlq=queue.pk, add_row="1"))["body:customer"] == ["acme", "globex"]


@pytest.mark.soak
def test_a_person_of_a_team_is_offered_fields_of_the_own_dlqs_only(ann: Client) -> None:
    ours, theirs = customers(), dlq("theirs")
    add_letter(theirs, LetterState.CAPTURED, body=b'{"canary": "canary"}', planned=True)
    team = Group.objects.create(name="payments")
    ours.teams.add(team)
    user = User.objects.create_user("tom", is_staff=True)
    user.groups.add(team)
    user.user_permissions.set(Permission.objects.filter(codename__in=(*MAKES, "view_payload")))
    tom = Client()
    tom.force_login(user)
    assert "Choose a dead-letter queue" in tom.get(ADD).content.decode()
    for chosen in ("", theirs.dlq_id, "x", "99999999999999999999"):
        page = tom.post(ADD, {"dlq": chosen, "show_values": "1"})
        assert (offered(page), page.context["offers"].needs_dlq) == ({}, True)
        row = {"row_0_field": "source", "row_0_operator": "prefix", "row_0_value": "theirs", "shown_as": "rows"}
        part = tom.post(ADD, {"dlq": chosen, "do": "live", **row}).content.decode()
        assert "Choose a dead-letter queue to see what the conditions match." in part
        assert "It would act on" not in part
    assert "body:customer" in offered(tom.post(ADD, {"dlq": ours.pk, "update": "1"}))
    assert AuditEntry.objects.count() == 0


@pytest.mark.soak
def test_html_in_names_and_values_is_escaped_and_300_fields_stay_a_small_page(ann: Client) -> None:
    source = dlq("shop")
    body = {
        "<img src=x onerror=alert(1)>": "<script>alert(2)</script>",
        "\u202eevil": "x",
        **{f"field-{n}": "v" * 90 for n in range(300)},
    }
    for _ in range(9):
        add_letter(source, LetterState.CAPTURED, body=json.dumps(body).encode(), planned=True)
    page = ann.post(ADD, {"dlq": source.dlq_id, "show_values": "1"})
    text = page.content.decode()
    assert [hostile in text for hostile in ("<img src=x", "<script>alert(2)")] == [False, False]
    assert "263 more fields are not shown." in text
    assert len(page.content) < 120 * 1024
    found = {field.name: field for field in page.context["offers"].found.fields}
    condition = found['body:"<img src=x onerror=alert(1)>"'].values[0].condition
    page = pressed(ann, ADD, page, dlq=source.dlq_id, use=condition)
    assert of(page) == ['body:"<img src=x onerror=alert(1)>" equals <script>alert(2)</script>']
    assert "<img src=x" not in page.content.decode()


@pytest.mark.soak
def test_the_page_reads_no_more_for_more_messages(ann: Client) -> None:
    source, counts = dlq("shop"), []
    for _ in range(2):
        for _ in range(20):
            add_letter(source, LetterState.CAPTURED, body=b'{"a": 1}', planned=True)
        with CaptureQueriesContext(connection) as statements:
            ann.post(ADD, {"dlq": source.dlq_id, "show_values": "1"})
        counts.append(len(statements))
    assert counts[0] == counts[1]
