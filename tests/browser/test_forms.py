"""A DLQ is added by its URL, and a rule is built from rows, in a browser."""

from __future__ import annotations

import json

import pytest
from axe_playwright_python.base import AXE_FILE_PATH

from reprocessing.domain.lifecycle import LetterState
from reprocessing.models import DeadLetterQueue, Rule
from tests.browser.chromium import PHONE, Window
from tests.browser.conftest import ADMINISTRATOR, Opening
from tests.browser.test_every_page import BARRIERS, TOO_WIDE
from tests.contract.queues import Queue, redrive_policy
from tests.reprocessing.admin.parking_lot.parked_messages import dlq
from tests.reprocessing.commands.stock import add_letter
from tests.reprocessing.gateways.aws_endpoint import MakeQueue, endpoint, make_queue, own_sqs, sandbox  # noqa: F401  fixtures

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak]


@pytest.fixture
def watched(make_queue: MakeQueue) -> Queue:  # noqa: F811  a fixture
    found = make_queue(MessageRetentionPeriod="1209600")
    make_queue(RedrivePolicy=redrive_policy(found, 3))
    return found


def barriers(window: Window) -> list[str]:
    """What bars somebody from the page, or is wider than it, with every section open, light and dark."""
    assert window.troubles() == []
    window.ask(f"{AXE_FILE_PATH.read_text(encoding='utf-8')};0")
    window.ask("document.querySelectorAll('.sheet details').forEach((one) => { one.open = true; })")
    found: list[str] = []
    for scheme in ("light", "dark"):
        window.dress(scheme)
        found += [wide for wide in [window.ask(TOO_WIDE)] if wide]
        found += window.ask(BARRIERS)
    window.troubles()  # the policy refuses axe-core's own inline styles
    return found


def test_two_clicks_add_a_dlq_by_its_url(watched: Queue, window: Opening) -> None:
    ann = window("ann", ADMINISTRATOR)
    ann.open("/admin/reprocessing/deadletterqueue/add/")
    ann.write("Queue URL or ARN", watched.url)
    ann.press("Read the queue")
    ann.sees("Its redrive policy names this DLQ, after 3 receives")
    assert ann.ask("document.querySelectorAll('.sheet details[open]').length") == 0
    assert barriers(ann) == []
    ann.write("Reason", "a new shop")
    ann.press("Add")
    ann.sees(f"{watched.name} is added.")
    row = DeadLetterQueue.objects.get()
    assert (row.name, row.url, row.mode) == (watched.name, watched.url, "manual")


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_one_customer_is_quarantined_by_a_body_field_without_typing_json(scripts: bool, window: Opening) -> None:
    source = dlq("shop")
    for customer in ("acme", "acme", "globex"):
        add_letter(source, LetterState.CAPTURED, body=json.dumps({"customer": customer}).encode(), planned=True)
    ann = window("ann", ADMINISTRATOR, javascript=scripts, size=(1280, 800) if scripts else PHONE)
    ann.open("/admin/reprocessing/rule/add/")
    ann.write("Name", "acme-only")
    ann.choose("Dead-letter queue", "shop")
    if not scripts:
        ann.press("Update")
    ann.press("Show fields and values")
    ann.press("globex (1 message)")
    ann.sees("It would act on 1 message now waiting (1 captured).")
    if scripts:
        ann.write("Value 1", "acme")
        ann.sees("It would act on 2 messages now waiting (2 captured).")
    else:
        ann.press("Remove condition 1")
        ann.press("acme (2 messages)")
    ann.choose("Action", "quarantine: park for review")
    ann.press("Preview")
    ann.sees("The rule will be added, but not enabled")
    ann.sees("It would act on 2 messages now waiting (2 captured).")
    place = "document.getElementById('preview').getBoundingClientRect()"
    assert ann.ask(f"[location.hash, {place}.top >= 0 && {place}.bottom <= innerHeight]") == ["#preview", True]
    if scripts:
        assert barriers(ann) == []
    ann.write("Reason", "acme sends rubbish")
    ann.sees("The rule will be added, but not enabled: it decides nothing until you enable it.")
    ann.press("Add, not enabled")
    ann.sees("acme-only is added, not enabled: it decides nothing until you enable it.")
    rule = Rule.objects.get()
    assert (rule.conditions, rule.action, rule.dlq_id) == (
        ["body:customer equals acme"], "quarantine", source.dlq_id,
    )  # fmt: skip


@pytest.mark.parametrize("scripts", [True, False])
def test_a_value_is_typed_at_once_after_a_field_was_chosen(scripts: bool, window: Opening) -> None:
    source = dlq("shop")
    add_letter(source, LetterState.CAPTURED, body=b'{"customer": "acme"}', planned=True)
    ann = window("ann", ADMINISTRATOR, javascript=scripts)
    ann.open("/admin/reprocessing/rule/add/")
    ann.choose("Dead-letter queue", "shop")
    if not scripts:
        ann.press("Update")
    ann.press("Show fields and values")
    ann.press("Enter a value")
    ann.sees("Enter a value.", where=".live-effect")
    assert ann.ask("[document.activeElement.name, document.activeElement.value]") == ["row_0_value", ""]
