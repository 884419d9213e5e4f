"""Who a provider's person is here, and which groups the person has: anew at each sign-in."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, User
from django.db import IntegrityError, transaction
from django.test import Client
from pytest_django.fixtures import Settings

from redrive_service.oidc import claims, people
from redrive_service.oidc.refusals import DISABLED, NO_ACCESS, Refusal, SignInRefused
from reprocessing.models import ProviderIdentity
from reprocessing.store.ordering.lanes import database_now
from tests.redrive_service.oidc.conftest import SignIn, oidc_of
from tests.redrive_service.oidc.provider import Claims, Provider

ISSUER = "https://login.example.com"
OIDC = oidc_of(ISSUER)
ANN: Claims = {"sub": "ann-1", "preferred_username": "ann", "groups": ["ops"]}


def admitted(told: Claims, issuer: str = ISSUER) -> User:
    return people.admitted(issuer, told, OIDC)


def refusal(told: Claims) -> Refusal:
    with pytest.raises(SignInRefused) as caught:
        admitted(told)
    return caught.value.refusal


def groups_of(name: str) -> set[str]:
    return set(Group.objects.filter(user__username=name).values_list("name", flat=True))


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (["ops", "pay", "others"], {"Redrive operator", "payments"}),
        ("ops", {"Redrive operator"}),
        (["OPS", "ops ", "Redrive administrator", 7, None, ["admins"], {"ops": 1}], set()),
        ([], set()), (None, set()), ({"ops": True}, set()), ("ops,admins", set()),
    ],
    ids=["a list", "one", "alike", "empty", "nothing", "an object", "a list as a text"],
)  # fmt: skip
def test_groups_are_those_that_the_map_names_for_a_value(told: object, expected: set[str]) -> None:
    assert claims.mapped_groups({"groups": told}, OIDC) == expected


@pytest.mark.parametrize(
    ("told", "expected"), [(True, True), ("true", True), (False, False), ("yes", False), (None, False), ([True], False)]
)
def test_a_claim_for_staff_must_be_true(told: object, expected: bool) -> None:
    assert claims.may_enter({"staff": told}, replace(OIDC, staff_claim="staff")) is expected
    assert claims.may_enter({"staff": told}, OIDC) is True


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ({"preferred_username": "ann"}, "ann"), ({"email": "ann@example.com"}, "ann@example.com"),
        ({"preferred_username": "", "email": 7}, "00u1"), ({"preferred_username": "Ann <b>O'H</b>"}, "Ann-b-O-H-b"),
        ({"preferred_username": "a\nb"}, "00u1"), ({"preferred_username": "x" * 300}, "x" * 140),
        ({"preferred_username": "<>"}, "person"),
    ],
    ids=["name", "e-mail", "neither", "markup", "unprintable", "long", "nothing left"],
)  # fmt: skip
def test_a_user_name_is_made_of_what_django_accepts(told: Claims, name: str) -> None:
    assert claims.user_name({"sub": "00u1"} | told) == name


def test_a_name_that_somebody_has_gets_a_number() -> None:
    assert [claims.free_name("Ann", taken) for taken in ((), ("ann",), ("ann", "ann-2"))] == ["Ann", "Ann-2", "Ann-3"]


@pytest.mark.django_db
def test_a_new_person_is_a_user_without_a_password_and_without_all_rights(groups: None) -> None:
    ann = admitted(ANN | {"email": "ann@example.com", "given_name": "Ann", "family_name": "Lee", "is_superuser": True})
    assert (ann.username, ann.email, ann.first_name, ann.last_name) == ("ann", "ann@example.com", "Ann", "Lee")
    assert (ann.is_staff, ann.is_superuser, ann.has_usable_password()) == (True, False, False)
    assert groups_of("ann") == {"Redrive operator"}


@pytest.mark.django_db
def test_a_sign_in_adds_and_removes_groups_that_the_map_names_and_no_others(
    groups: None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "redrive.sign_in")
    admitted(ANN | {"groups": ["ops", "pay"]}).groups.add(Group.objects.get(name="by hand"))
    admitted(ANN | {"groups": ["admins", "pay"]})
    assert groups_of("ann") == {"Redrive administrator", "payments", "by hand"}
    assert caplog.messages == [
        "A new user: ann", "Groups of ann added: Redrive operator, payments",
        "Groups of ann added: Redrive administrator", "Groups of ann removed: Redrive operator",
    ]  # fmt: skip


@pytest.mark.django_db
def test_who_has_no_mapped_group_is_no_user(groups: None) -> None:
    assert refusal(ANN | {"groups": ["others"]}) is NO_ACCESS
    assert (User.objects.count(), ProviderIdentity.objects.count()) == (0, 0)


@pytest.mark.django_db
def test_who_loses_the_last_mapped_group_loses_access_everywhere_at_once(groups: None) -> None:
    admitted(ANN).groups.add(Group.objects.get(name="by hand"))
    assert refusal(ANN | {"groups": []}) is NO_ACCESS
    assert (User.objects.get().is_staff, groups_of("ann")) == (False, {"by hand"})
    admitted(ANN)
    assert (User.objects.get().is_staff, groups_of("ann")) == (True, {"by hand", "Redrive operator"})


@pytest.mark.django_db
def test_each_sign_in_with_access_records_when_the_provider_confirmed_the_person(groups: None) -> None:
    admitted(ANN)
    long_ago = database_now() - timedelta(days=90)
    ProviderIdentity.objects.update(confirmed_at=long_ago)
    assert refusal(ANN | {"groups": []}) is NO_ACCESS
    assert ProviderIdentity.objects.get().confirmed_at == long_ago
    before = database_now()
    admitted(ANN)
    assert ProviderIdentity.objects.get().confirmed_at >= before


@pytest.mark.django_db
def test_a_person_is_found_by_issuer_and_sub_and_by_nothing_else(groups: None) -> None:
    ann = admitted(ANN | {"email": "ann@example.com"})
    assert admitted({"sub": "ann-1", "preferred_username": "renamed", "groups": ["ops"]}) == ann
    ben = admitted(ANN | {"sub": "ben-1", "email": "ann@example.com"})
    other = admitted(ANN | {"email": "ann@example.com"}, issuer="https://login.example.org")
    assert [one.username for one in (ann, ben, other)] == ["ann", "ann-2", "ann-3"]


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["root", "ROOT"])
def test_a_local_superuser_is_not_taken_over(groups: None, name: str) -> None:
    root = User.objects.create_superuser("root", email="root@example.com")
    told = admitted({"sub": "root", "preferred_username": name, "email": "root@example.com", "groups": ["ops"]})
    assert (told.pk != root.pk, told.username, told.is_superuser) == (True, f"{name}-2", False)


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["İlker", "Åsa", "ẞ", "ΣΑΣ"], ids=["dotted I", "ring", "sharp s", "final sigma"])
def test_people_of_the_same_name_sign_in_whatever_the_locale_of_postgresql(groups: None, name: str) -> None:
    first, second = (admitted(ANN | {"sub": sub, "preferred_username": name}) for sub in ("1", "2"))
    assert (first.username, second.username) == (name, f"{name}-2")


@pytest.mark.django_db
def test_who_was_disabled_here_is_refused(groups: None) -> None:
    User.objects.filter(pk=admitted(ANN).pk).update(is_active=False)
    assert refusal(ANN) is DISABLED


@pytest.mark.django_db
def test_a_group_of_the_map_that_does_not_exist_gives_nothing_and_is_told(
    db: None, caplog: pytest.LogCaptureFixture
) -> None:
    assert refusal(ANN) is NO_ACCESS
    (told,) = caplog.messages
    assert told.startswith("The group 'Redrive operator' of REDRIVE_OIDC_GROUPS does not exist. Create it")


@pytest.mark.django_db
def test_groups_that_entra_left_out_are_told_in_the_log(groups: None) -> None:
    with pytest.raises(SignInRefused, match="too many groups for a token"):
        admitted({"sub": "ann-1", "_claim_names": {"groups": "src1"}})


@pytest.mark.django_db
def test_the_database_refuses_a_second_user_of_a_person_and_a_person_without_an_id(groups: None) -> None:
    admitted(ANN)
    for issuer, subject, rule in (
        (ISSUER, "ann-1", "one_user_of_a_provider_identity"),
        (ISSUER, "", "provider_identity_has_issuer_and_subject"),
    ):
        user = User.objects.create_user(f"u{subject}")
        with pytest.raises(IntegrityError, match=rule), transaction.atomic():
            ProviderIdentity.objects.create(user=user, issuer=issuer, subject=subject)


@pytest.mark.django_db
def test_a_page_says_plainly_that_no_group_has_access(client: Client, provider: Provider, sign_in: SignIn) -> None:
    provider.person["groups"] = ["others"]
    answer = sign_in(client)
    page = answer.content.decode()
    assert answer.status_code == 403
    assert "Example Login knows you, but none of your groups has access to this service." in page
    assert 'href="/oidc/sign-in?other=yes"' in page
    assert ("others" in page, "ops" in page) == (False, False)


@pytest.mark.django_db
def test_groups_that_the_token_lacks_are_taken_from_the_userinfo(
    client: Client, provider: Provider, sign_in: SignIn
) -> None:
    del provider.person["groups"]
    provider.userinfo = {"groups": ["pay"], "preferred_username": "not ann"}
    assert sign_in(client).status_code == 302
    assert groups_of("ann") == {"payments"}


@pytest.mark.django_db
def test_the_claim_of_the_groups_is_a_setting(
    client: Client, provider: Provider, sign_in: SignIn, settings: Settings
) -> None:
    settings.OIDC = replace(settings.OIDC, groups_claim="https://example.com/roles")
    provider.person |= {"groups": ["admins"], "https://example.com/roles": ["pay"]}
    sign_in(client)
    assert groups_of("ann") == {"payments"}
