"""make_roles: the desk's groups, shown before they are made, and what somebody changed in them shown again."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, Permission, User

from tests.reprocessing.commands.conftest import Ask, AskJson

pytestmark = pytest.mark.django_db


def test_groups_are_made_once_and_by_a_dry_run_never(ask: Ask) -> None:
    said = ask("make_roles")
    assert "Redrive viewer: views everything except payloads\n  new group\n" in said
    assert said.endswith("This was a dry run: the groups are changed with --confirm.\n")
    assert not Group.objects.exists()
    ask("make_roles", "--confirm")
    made = list(Group.objects.order_by("id").values_list("name", flat=True))
    assert made == ["Redrive viewer", "Redrive operator", "Redrive editor", "Redrive administrator"]
    assert ask("make_roles", "--confirm").count("up to date") == 4
    assert "dry run" not in ask("make_roles")


def test_what_somebody_changed_is_shown_and_made_good_and_members_stay(ask: Ask, ask_json: AskJson) -> None:
    ask("make_roles", "--confirm")
    group = Group.objects.get(name="Redrive operator")
    member = User.objects.create_user("ann")
    member.groups.add(group)
    group.permissions.remove(Permission.objects.get(codename="stop_sends"))
    group.permissions.add(Permission.objects.get(codename="view_payload"), Permission.objects.get(codename="add_user"))
    lines = [line.strip() for line in ask("make_roles").splitlines() if line.strip().startswith(("+", "-"))]
    assert lines == ["+ reprocessing.stop_sends", "- auth.add_user", "- reprocessing.view_payload"]
    changed = ask_json("make_roles", "--confirm")["roles"][1]
    assert (changed["added"], changed["removed"]) == (
        ["reprocessing.stop_sends"], ["auth.add_user", "reprocessing.view_payload"],
    )  # fmt: skip
    assert ask("make_roles").count("up to date") == 4
    assert list(member.groups.all()) == [group]
