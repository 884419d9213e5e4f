from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from pytest_django import DjangoAssertNumQueries

from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.models import Breaker, BulkAction, DeadLetterQueue, Letter, RateClass, Rule, Source, Target
from reprocessing.store.parking_lot import filtered_letters
from reprocessing.store.rights import roles
from reprocessing.store.rights.visible_dlqs import EVERY_DLQ, VisibleDlqs, has_teams, visible_dlqs
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, parked

pytestmark = pytest.mark.django_db


def user(*groups: Group) -> User:
    found = User.objects.create_user("ann")
    found.groups.set(groups)
    return found


@pytest.fixture
def ours() -> Source:
    return dlq("ours")


@pytest.fixture
def theirs() -> Source:
    return dlq("theirs")


def test_a_person_sees_the_dlqs_of_the_own_groups_by_one_query(
    ours: Source, theirs: Source, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    red, blue, grey = (Group.objects.create(name=name) for name in ("red", "blue", "grey"))
    ours.dlq.teams.set([red, blue])
    theirs.dlq.teams.set([grey])
    person = user(red, blue)
    assert not person.has_perm("reprocessing.view_all_dlqs")  # reads the permissions, which Django keeps
    with django_assert_num_queries(1):
        assert visible_dlqs(person) == VisibleDlqs((ours.dlq_id,))


def test_a_person_in_no_team_and_a_dlq_of_no_team_have_nothing_in_common(ours: Source) -> None:
    assert visible_dlqs(user(Group.objects.create(name="red"))) == VisibleDlqs(())
    assert visible_dlqs(AnonymousUser()) == VisibleDlqs(())


def test_the_permission_and_superusers_see_all_dlqs_unless_they_left(ours: Source) -> None:
    person = user()
    person.user_permissions.add(Permission.objects.get(codename="view_all_dlqs"))
    root = User.objects.create_superuser("root")
    gone = User.objects.create_superuser("gone", is_active=False)
    assert [visible_dlqs(one) for one in (person, root, gone)] == [EVERY_DLQ, EVERY_DLQ, VisibleDlqs(())]


def test_nobody_of_no_dlq_sees_any_message(ours: Source) -> None:
    parked(ours)
    assert not VisibleDlqs(()).rows(Letter.objects.all()).exists()
    assert filtered_letters.count_letters(MessageFilter(dlqs=())) == 0
    assert filtered_letters.count_letters(MessageFilter.read(MessageFilter(dlqs=()).stored())) == 0
    assert filtered_letters.count_letters(MessageFilter(dlqs=(ours.dlq_id,))) == 1


def test_a_model_without_a_scope_has_no_rows() -> None:
    user()
    assert not VisibleDlqs((1,)).rows(User.objects.all()).exists()


def test_what_several_teams_use_is_shown_to_each_and_changed_by_none(ours: Source, theirs: Source) -> None:
    shared = Target.objects.create(arn="shared", url="shared", region="eu-west-1")
    for one in (ours, theirs):
        Source.objects.create(dlq=one.dlq, arn="shared", target=shared)
    seen = VisibleDlqs((ours.dlq_id,))
    assert set(seen.rows(Target.objects.all())) == {ours.target, shared}
    assert set(seen.changeable(Target.objects.all())) == {ours.target}
    assert set(seen.changeable(Breaker.objects.all())) == {Breaker.objects.get(target=ours.target)}
    assert set(VisibleDlqs((ours.dlq_id, theirs.dlq_id)).changeable(Target.objects.all())) == set(Target.objects.all())


def test_a_rule_of_all_dlqs_is_shown_to_each_team_and_changed_by_none(ours: Source, theirs: Source) -> None:
    everybody, mine, other = (
        Rule.objects.create(name=name, dlq=dlq, action="hold", created_by="ann")
        for name, dlq in (("everybody", None), ("mine", ours.dlq), ("other", theirs.dlq))
    )
    seen = VisibleDlqs((ours.dlq_id,))
    assert set(seen.rows(Rule.objects.all())) == {everybody, mine}
    assert set(seen.changeable(Rule.objects.all())) == {mine}
    assert other not in seen.rows(Rule.objects.all())


def test_a_rate_class_of_another_team_alone_and_its_breaker_are_not_shown(ours: Source, theirs: Source) -> None:
    free, used = RateClass.objects.create(name="free"), RateClass.objects.create(name="used")
    Rule.objects.create(name="other", dlq=theirs.dlq, action="hold", created_by="ann", rate_class=used)
    shown, hidden = (Breaker.objects.create(target=ours.target, rate_class=one) for one in (free, used))
    seen = VisibleDlqs((ours.dlq_id,))
    assert list(seen.rows(RateClass.objects.all())) == [free]
    assert shown in seen.rows(Breaker.objects.all())
    assert hidden not in seen.rows(Breaker.objects.all())


@pytest.mark.parametrize(
    ("stored", "is_shown"),
    [({}, False), ({"dlqs": []}, True), ({"dlqs": [0]}, True), ({"dlqs": [0, 1]}, False), ({"dlq": 1}, False)],
)
def test_a_bulk_action_is_shown_if_it_cannot_reach_another_dlq(
    stored: dict[str, object], is_shown: bool, ours: Source, theirs: Source
) -> None:
    """In the filters, 0 stands for our DLQ and 1 for theirs."""
    pks = ours.dlq_id, theirs.dlq_id
    asked = {
        name: [pks[number] for number in said] if isinstance(said, list) else pks[1] for name, said in stored.items()
    }
    BulkAction.objects.create(act="note", filter=asked, by="ann", reason="why", max_letter_id=0, asked=0)
    assert VisibleDlqs((ours.dlq_id,)).rows(BulkAction.objects.all()).exists() is is_shown


def test_the_roles_see_all_dlqs_until_the_first_has_a_team_and_again_after_the_last(ours: Source) -> None:
    roles.update_groups()
    person = user(Group.objects.get(name="Redrive viewer"))
    assert visible_dlqs(person).are_all
    ours.dlq.teams.add(Group.objects.create(name="red"))
    assert has_teams()
    roles.end_view_of_all_dlqs()
    assert visible_dlqs(User.objects.get(pk=person.pk)) == VisibleDlqs(())
    assert all(one.is_none for one in roles.role_differences())
    DeadLetterQueue.objects.get().teams.clear()
    assert visible_dlqs(User.objects.get(pk=person.pk)) == VisibleDlqs(())  # not by itself
    roles.update_groups()
    assert visible_dlqs(User.objects.get(pk=person.pk)).are_all
