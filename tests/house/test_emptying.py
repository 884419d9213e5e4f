"""What a test wrote is gone before the next one, and what the migrations left is there."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.db import connection

from tests.conftest import _kept, empty
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)


def rows() -> dict[str, int]:
    tables = connection.introspection.django_table_names(only_existing=True, include_views=False)
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(f"SELECT '{name}', count(*) FROM \"{name}\"" for name in tables))
        return {name: count for name, count in cursor.fetchall() if count}


@pytest.mark.soak
def test_of_a_delivered_letter_and_its_user_nothing_is_left() -> None:
    empty()
    left = rows()
    bench = Workbench()
    bench.bury("letter")
    bench.ready()
    assert bench.replay().taken == 1
    User.objects.create_user("somebody").user_permissions.add(Permission.objects.all()[0])
    empty()
    assert rows() == left == _kept == {
        "django_content_type": ContentType.objects.count(), "auth_permission": Permission.objects.count()
    }  # fmt: skip


@pytest.mark.soak
@pytest.mark.parametrize(
    "changes",
    [
        lambda: Permission.objects.filter(codename="add_user").delete(),
        lambda: ContentType.objects.create(app_label="somebody", model="else"),
    ],
)
def test_what_the_migrations_left_is_restored(changes: Callable[[], object]) -> None:
    empty()
    left = rows()
    changes()
    Group.objects.create(name="operators")
    assert rows() != left
    empty()
    assert rows() == left
