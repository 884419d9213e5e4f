"""Every list shows its active filters as chips, each with a link that removes the filter."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client

from reprocessing.models import DeadLetterQueue
from tests.reprocessing.admin.parking_lot.parked_messages import dlq

pytestmark = pytest.mark.django_db


@pytest.fixture
def root(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("root"))
    return client


def chips(page: str) -> dict[str, str]:
    """The active filters, each with the query that its removal leaves."""
    found = re.findall(r'<a class="chip" href="([^"]*)"><span [^>]*>[^<]*</span>(.*?) <span', page)
    return {unescape(words): unescape(without) for without, words in found}


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("rule/?enabled__exact=1&action__exact=hold", {
            "Enabled: yes": "?action__exact=hold", "Action: hold": "?enabled__exact=1"}),
        ("rule/?enabled=0", {"Enabled: no": "?"}),
        ("rule/?dlq__isnull=True", {"Dead-letter queue: all DLQs": "?"}),
        ("auditentry/?dlq__isnull=True", {"Dead-letter queue: none": "?"}),
        ("deadletterqueue/?mode=manual", {"Mode: manual: redrive when a person starts a run": "?"}),
        ("target/?kind__exact=http", {"Kind: HTTP endpoint": "?"}),
        ("auditentry/?act__exact=released", {"Action: released": "?"}),
    ],
)  # fmt: skip
def test_a_list_names_its_active_filters_and_removes_each(root: Client, address: str, shown: dict[str, str]) -> None:
    assert chips(root.get(f"/admin/reprocessing/{address}").content.decode()) == shown


def test_a_list_of_django_s_own_has_the_chips_too(root: Client) -> None:
    page = root.get("/admin/auth/user/?is_staff__exact=1&is_active__exact=0&q=ann").content.decode()
    assert chips(page) == {
        "Staff status: Yes": "?is_active__exact=0&q=ann", "Active: No": "?is_staff__exact=1&q=ann",
    }  # fmt: skip


def test_every_list_with_filters_uses_the_template_with_the_chips(root: Client) -> None:
    """Without a filter, no list shows a chip."""
    with_filters = [
        options.opts for options in admin.site._registry.values() if options.list_filter and options.opts.app_label
    ]
    assert len(with_filters) > 10
    for opts in with_filters:
        answer = root.get(f"/admin/{opts.app_label}/{opts.model_name}/")
        names = {template.name for template in answer.templates}
        assert "admin/change_list.html" in names or opts.model_name == "parkedletter", opts
        assert chips(answer.content.decode()) == {}, opts


@pytest.mark.parametrize("address", ["deadletterqueue/?mode=manual"])
def test_more_dlqs_than_fit_on_a_page_have_a_next_page(root: Client, address: str) -> None:
    url = "http://127.0.0.1:9/0/"
    first = dlq("dlq-000").dlq
    DeadLetterQueue.objects.bulk_create(
        DeadLetterQueue(
            name=f"dlq-{n:03}", url=f"{url}dlq-{n:03}", arn=f"arn:aws:sqs:us-east-1:0:dlq-{n:03}", region="us-east-1",
            mode=first.mode, policy=first.policy,
        )
        for n in range(1, 60)
    )  # fmt: skip
    page = root.get(f"/admin/reprocessing/{address}").content.decode()
    following = unescape(str(re.findall(r'href="([^"]*)">Next page', page)[0]))
    assert "dlq-059" not in page
    assert "dlq-059" in root.get(f"/admin/reprocessing/deadletterqueue/{following}").content.decode()
