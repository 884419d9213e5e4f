from __future__ import annotations

from urllib.parse import urlencode

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from django.core.paginator import Paginator
from django.db.models import CompositePrimaryKey
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from reprocessing.admin.site.keyset_list import FirstPages
from reprocessing.models import Letter, Reporter
from reprocessing.models.letter import ParkedLetter
from tests.reprocessing.admin.site.sample_rows import rows_of_everything

pytestmark = pytest.mark.django_db
MODELS = [one for one in apps.get_app_config("reprocessing").get_models() if one in admin.site._registry]
NAMES = [one._meta.model_name or "" for one in MODELS]
#: What other pages show, and nobody looks for by itself.
BESIDE = {
    "ApiCall", "ApprovalDefault",
    "BulkAction", "DiscoveredSource", "DiscoveryScope", "DlqSample", "Erasure", "GroupHour",
    "HourlyCount", "HourlyCountDelta",
    "LetterCount", "LetterCountDelta", "Metric", "Payload", "PayloadKey", "ProviderIdentity", "RestoreDoubt",
    "Revision", "RunMinute", "SavedFilter", "TaskHints", "TickCount",
    "UnapprovedAction",
}  # fmt: skip


@pytest.fixture
def root(client: Client) -> Client:
    """Somebody who may do everything, and still rewrites nothing."""
    client.force_login(User.objects.create_superuser("root"))
    return client


@pytest.fixture
def rows() -> None:
    rows_of_everything()


def address(model_name: str, page: str, *arguments: object) -> str:
    return reverse(f"admin:reprocessing_{model_name}_{page}", args=arguments)


def test_all_models_are_registered() -> None:
    absent = {one for one in apps.get_app_config("reprocessing").get_models() if one not in admin.site._registry}
    composite = {one for one in absent if isinstance(one._meta.pk, CompositePrimaryKey)}
    assert {one.__name__ for one in absent - composite} <= BESIDE


def first(model_name: str) -> object:
    row = apps.get_model("reprocessing", model_name)._default_manager.first()
    assert row is not None, model_name
    return row.pk


@pytest.mark.soak
def test_lists_and_pages_have_bounded_queries(
    root: Client, rows: None, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    seen = {}
    for name in NAMES:
        with django_assert_max_num_queries(10, info=name):
            listed = root.get(address(name, "changelist")).status_code
        with django_assert_max_num_queries(25, info=name):
            seen[name] = (listed, root.get(address(name, "change", first(name))).status_code)
    assert seen == dict.fromkeys(NAMES, (200, 200))


@pytest.mark.soak
def test_strange_searches_are_answered(root: Client, rows: None) -> None:
    queries = [urlencode({"q": text}) for text in ("shop\0", "x" * 5_000, "' OR 1=1")]
    seen = {
        name: [root.get(f"{address(name, 'changelist')}?{query}").status_code for query in queries] for name in NAMES
    }
    assert seen == {name: [200, 200, 200] for name in NAMES}


def test_count_has_a_limit(monkeypatch: pytest.MonkeyPatch, rows: None) -> None:
    monkeypatch.setattr("reprocessing.admin.site.keyset_list.REACH", 2)
    everything = Letter.objects.order_by("pk")
    assert [Paginator(everything, 1).count, FirstPages(everything, 1).count] == [3, 2]


def test_parking_lot_has_its_own_permissions() -> None:
    assert ParkedLetter._meta.default_permissions == ("view", "release", "discard", "edit", "assign")


def test_token_hash_is_not_shown(root: Client, rows: None) -> None:
    reporter = Reporter.objects.get(name="shop-1")
    reporter.token_hash = bytes(range(65, 97))
    reporter.save()
    page = root.get(address("reporter", "change", reporter.pk)).content.decode()
    assert "shop-1" in page
    assert "token" not in page.lower().replace("csrfmiddlewaretoken", "").replace("apitoken", "").replace(
        "api tokens", ""
    )
