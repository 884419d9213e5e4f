"""The table of failure groups in a browser."""

from __future__ import annotations

from datetime import timedelta

import pytest
from axe_playwright_python.base import AXE_FILE_PATH

from reprocessing.models import FailureGroup, GroupHour, Letter, Source
from reprocessing.store.ordering.lanes import database_now
from tests.browser.chromium import PHONE
from tests.browser.conftest import OPERATOR, Opening
from tests.browser.test_every_page import READ, TOO_WIDE
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, failure_group, parked

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak]
GROUPS = "/admin/reprocessing/failuregroup/"
NAMES = (
    "shop.CardDeclined (0a1b2c3d)", "The target refused it: 503 Service Unavailable", "orders/create", "pull_request",
    "Event order.paid from shop.orders", "customer.subscription.trial_will_end", "JSON with action, label, repository",
    "Lambda: RetriesExhausted: ValueError", "Task shop.tasks.ship", "No answer: no reply within # s", "issues",
)  # fmt: skip


def groups(source: Source) -> None:
    now = database_now()
    for no, title in enumerate(NAMES):
        last = now - timedelta(minutes=7 * no + 3)
        group = failure_group(source, title, last_at=last, assigned_to="ann" * (no % 3 == 1))
        FailureGroup.objects.filter(pk=group.pk).update(created_at=now - timedelta(hours=9 * no))
        for n in range(1 + no % 4):
            Letter.objects.filter(pk=parked(source, key=f"account-{n}").pk).update(group=group)
        for hour in range(0, 24, 1 + no % 5):
            at = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=hour)
            GroupHour.objects.create(group_id=group.pk, hour=at, n=1 + (hour * 7 + no * 5) % 13)


def test_groups_are_merged_and_split_again_by_a_person(window: Opening) -> None:
    groups(dlq("shop"))
    ann = window("ann", OPERATOR)
    ann.open(GROUPS)
    for title in ("issues", "pull_request"):
        ann.tick(f'input[aria-label="Select {title}"]')
    ann.press("Merge selected…")
    ann.sees("2 groups become one group")
    ann.write("Reason", "one webhook")
    ann.press("Merge")
    ann.sees("Merged: 2 groups are one group.")
    ann.press("Split…")
    ann.write("Reason", "two webhooks")
    ann.press("Split")
    ann.sees("Split off: 1 group.")
    assert FailureGroup.objects.filter(merged_into=None).count() == len(NAMES)


def test_on_a_phone_each_group_is_a_block_whose_actions_are_on_one_line(window: Opening) -> None:
    groups(dlq("shop"))
    ann = window("ann", OPERATOR, size=PHONE, javascript=True)
    ann.open(GROUPS)
    assert ann.ask("document.documentElement.scrollWidth <= innerWidth")
    frame = "document.querySelector('.groups-frame')"
    assert ann.ask(f"{frame}.scrollWidth <= {frame}.clientWidth")
    acts = "[...document.querySelector('tbody .groups-acts div').children].map((one) => one.getBoundingClientRect())"
    assert ann.ask(f"new Set({acts}.map((one) => one.top)).size") == 1
    assert ann.ask(f"{acts}.every((one) => one.left >= 0 && one.right <= innerWidth)")
    ann.ask(f"{AXE_FILE_PATH.read_text(encoding='utf-8')};0")
    for scheme in READ:
        ann.dress(scheme)
        assert (ann.ask(TOO_WIDE), ann.ask(READ[scheme])) == ("", []), scheme
    ann.troubles()  # the policy refuses axe-core's own inline styles
    ann.press("Parked")
    ann.sees("New first")
    ann.ask("document.querySelector('tbody button').focus()")
    ann.do(lambda page: page.keyboard.press("Enter"))
    ann.sees("parked message")
