"""make_roles: the desk's groups, shown before they are made, and what somebody changed in them shown again."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.management import call_command

pytestmark = pytest.mark.django_db


def _said(*words: str) -> str:
    out = StringIO()
    call_command("make_roles", *words, stdout=out)
    return out.getvalue()


def test_a_dry_run_makes_nothing_and_says_what_it_would_make() -> None:
    said = _said()
    assert "Redrive viewer: views everything except payloads\n  new group\n" in said
    assert said.endswith("This was a dry run: the groups are changed with --confirm.\n")
    assert not Group.objects.exists()


def test_groups_are_made_once() -> None:
    _said("--confirm")
    made = list(Group.objects.order_by("id").values_list("name", flat=True))
    assert made == ["Redrive viewer", "Redrive operator", "Redrive editor", "Redrive administrator"]
    assert _said("--confirm").count("up to date") == 4
    assert "dry run" not in _said()


def test_what_somebody_changed_is_shown_and_made_good_and_members_stay() -> None:
    _said("--confirm")
    group = Group.objects.get(name="Redrive operator")
    member = User.objects.create_user("ann")
    member.groups.add(group)
    group.permissions.remove(Permission.objects.get(codename="stop_sends"))
    group.permissions.add(Permission.objects.get(codename="view_payload"), Permission.objects.get(codename="add_user"))
    lines = [line.strip() for line in _said().splitlines() if line.strip().startswith(("+", "-"))]
    assert lines == ["+ reprocessing.stop_sends", "- auth.add_user", "- reprocessing.view_payload"]
    changed = json.loads(_said("--confirm", "--json"))["roles"][1]
    assert (changed["added"], changed["removed"]) == (
        ["reprocessing.stop_sends"],
        ["auth.add_user", "reprocessing.view_payload"],
    )
    assert _said().count("up to date") == 4
    assert list(member.groups.all()) == [group]
