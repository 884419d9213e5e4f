"""Before the web server answers, it has loaded what its first requests need, and garbage collection skips all of it."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from django.template import Template
from django.test import Client

from redrive_service.server import prepare_pages


@pytest.fixture
def _collected_again() -> Iterator[None]:
    yield
    gc.unfreeze()


@pytest.mark.soak
@pytest.mark.usefixtures("_collected_again")
@pytest.mark.django_db
def test_the_first_request_compiles_no_template(admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare_pages()
    compiled: list[str] = []
    compile_nodes = Template.compile_nodelist

    def counted(template: Template) -> object:
        compiled.append(template.name or "from a text")
        return compile_nodes(template)

    monkeypatch.setattr(Template, "compile_nodelist", counted)
    for address in ("/admin/", "/admin/reprocessing/parkedletter/", "/admin/reprocessing/run/", "/admin/search"):
        assert admin_client.get(address).status_code == 200
    assert compiled == []


@pytest.mark.soak
@pytest.mark.usefixtures("_collected_again")
def test_a_full_garbage_collection_looks_at_no_object_that_was_loaded_before() -> None:
    lasting = [[] for _ in range(10)]  # type: list[list[object]]
    assert gc.is_tracked(lasting)
    prepare_pages()
    assert gc.get_freeze_count() > 100_000
    assert not any(found is lasting for found in gc.get_objects())
