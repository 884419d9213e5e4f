from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Field
from django.test import Client

import reprocessing.admin_site as desk_module
from reprocessing.admin.dlqs.dlq_form import DlqForm
from reprocessing.admin.parking_lot.decision import DecisionKind
from reprocessing.models import DeadLetterQueue, Letter, Rule
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.store.routing import rule_changes
from tests.reprocessing.admin.parking_lot.parked_messages import LOOKS, dlq, failure_group, parked, person, post
from tests.reprocessing.admin.site.sample_rows import operated, rows_of_everything

pytestmark = pytest.mark.django_db

LOT = "/admin/reprocessing/parkedletter/"
_NO_TEXT = re.compile(r"<(script|style|textarea|option)\b.*?</\1>|<[^>]+>", re.DOTALL)
_WRONG = (
    re.compile(r"(?<![\w.,:/#-])1 (?!is\b|as\b|was\b|has\b|its\b|this\b|less\b|s\b)[a-z]+s\b"),
    re.compile(r"(?<![\w.,:/#-])1 parked messages\b|\ball 1\b|\bthese 1\b"),
    re.compile(r"(?<!\.)\.\.(?!\.)"),
    re.compile(r"\bSelect \w[\w ]* to (?:view|change)\b|\b(?:View|Change) (?:review|rule|rate class|parked letter)\b"),
    re.compile(r"\breprocessing\.[a-z_]+\b"),
)


def wrong(page: str) -> list[str]:
    text = " ".join(unescape(_NO_TEXT.sub(" ", page)).split())
    return [text[max(0, one.start() - 40) : one.end() + 20] for how in _WRONG for one in how.finditer(text)]


@pytest.fixture
def root() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    return client


def test_wrong_texts_are_found() -> None:
    said = (
        "<b>1</b> parked messages",
        "1 bytes",
        "all 1",
        "not known..",
        "Select review to view",
        "reprocessing.add_rule",
    )
    assert [len(wrong(one)) > 0 for one in said] == [True] * len(said)
    assert wrong("11 letters, 1 letter, 2.1 s; dlq-1 letters… and 1 is left ...") == []


#: Words of the code that pages do not use: users read message, key queue, dashboard, source queue, DLQ, permissions.
_OF_CODE = re.compile(r"(?<![-\w])(?:letters?|lanes?|desks?|boards?|dlqs?|rights)(?![-\w])", re.IGNORECASE)
_MARKUP = re.compile(r"<(?:script|code)\b.*?</(?:script|code)>|<[^>]*>|{%.*?%}|{{.*?}}|{#.*?#}", re.DOTALL)


def test_pages_use_the_words_of_the_glossary() -> None:
    templates = [*Path(desk_module.__file__).parent.glob("templates/**/*.html")]
    assert len(templates) > 40
    texts = {one.name: _OF_CODE.findall(_MARKUP.sub(" ", _MARKUP.sub(" ", one.read_text()))) for one in templates}
    assert {name: found for name, found in texts.items() if set(found) - {"DLQ", "DLQs", "dlq"}} == {}


def test_dlq_page_has_the_labels_of_its_form(root: Client) -> None:
    row = dlq("shop").dlq
    page = root.get(f"/admin/reprocessing/deadletterqueue/{row.pk}/change/").content.decode()
    labels = [" ".join(one.split()).rstrip(":") for one in re.findall(r"<label>(.*?)</label>", page, re.DOTALL)]
    words = {str(one.label) for one in DlqForm.base_fields.values()}
    named = (one for one in DeadLetterQueue._meta.get_fields() if isinstance(one, Field))
    raw = {str(one.verbose_name).capitalize() for one in named} - words - {"Region", "Added at", "Retention"}
    assert {"Max backoff (s)", "Late message"} <= set(labels)
    assert raw.intersection(labels) == set()


@pytest.mark.soak
def test_lists_have_correct_texts(root: Client) -> None:
    ours = [one for one in admin.site._registry if one._meta.app_label == "reprocessing"]
    pages = {one: root.get(f"/admin/reprocessing/{one._meta.model_name}/").content.decode() for one in ours}
    assert {one: found for one, page in pages.items() if (found := wrong(page))} == {}


@pytest.mark.soak
def test_pages_about_one_message_use_the_singular(root: Client) -> None:
    letter = parked(dlq("shop"), body=b"x", reason="no_ordering_key")
    assert letter.source
    group = failure_group(letter.source)
    Letter.objects.update(group=group, lane=None)
    rule_changes.save_rule("bad", {"action": "hold", "conditions": []}, by="ann", reason="a test")
    Rule.objects.update(match_count=1)
    there = [
        LOT, f"{LOT}?q={letter.message_id}", f"/admin/reprocessing/failuregroup/{group.pk}/change/",
        "/admin/reprocessing/failuregroup/", f"/admin/reprocessing/bulkaction/{operated().pk}/change/",
        f"/admin/reprocessing/rule/{Rule.objects.get().pk}/remove", f"/admin/reprocessing/rule/add/?letter={letter.pk}",
    ]  # fmt: skip
    pages = {one: root.get(one).content.decode() for one in there}
    pages |= {
        f"{LOT}{action}": post(root, f"{LOT}{action}", scope="all", query="") for action in (*DecisionKind, "export")
    }
    pages |= {"rule": post(root, "/admin/reprocessing/rule/add/", name="a", action="hold", conditions="[]", do="look")}
    act_on_parked.discard([letter.pk], by="ann", reason="a test")
    pages |= {action: post(root, LOT + action, scope="all", query="state=discarded") for action in ("restore",)}
    assert {one: found for one, page in pages.items() if (found := wrong(page))} == {}


def test_closed_buttons_name_the_permission() -> None:
    letter = parked(dlq("shop"))
    viewer = person("ann", *LOOKS, "view_bulkaction", "view_failuregroup")
    there = (LOT, f"{LOT}{letter.pk}/change/", f"/admin/reprocessing/bulkaction/{operated().pk}/change/")
    pages = {one: viewer.get(one).content.decode() for one in there}
    assert {one: found for one, page in pages.items() if (found := wrong(page))} == {}
    assert (
        "You may not release (it needs the permission to release parked messages), discard (it needs the permission to "
        "discard parked messages), assign or note (it needs the permission to assign parked messages), "
        "edit (it needs the permissions to edit messages and to see payloads), "
        "export (it needs the permission to export messages)."
    ) in pages[LOT]


CLOSED = {
    "deadletterqueue": ("stop DLQs", "change DLQs", "operate runs"), "target": ("change targets",),
    "rule": ("change rules", "remove rules"), "breaker": ("change circuit breakers",), "lane": ("stop key queues",),
    "notificationroute": ("change notifications", "remove notifications"), "run": ("operate runs",),
    "failuregroup": ("change failure groups",),
}  # fmt: skip


@pytest.mark.soak
def test_buttons_without_permission_are_closed_and_say_so() -> None:
    rows_of_everything()
    viewer = person("eve", *(f"view_{model}" for model in CLOSED))
    for name, actions in CLOSED.items():
        row = apps.get_model("reprocessing", name).objects.earliest("pk")
        page = viewer.get(f"/admin/reprocessing/{name}/{row.pk}/change/").content.decode()
        told = [f'You may not {action}: <a href="/admin/rights">your permissions</a>' in page for action in actions]
        assert told == [True] * len(actions), name
