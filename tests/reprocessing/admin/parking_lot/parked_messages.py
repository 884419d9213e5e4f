"""Parked messages with payload and history, and people with permissions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from itertools import count
from typing import Any

from django.contrib.auth.models import Permission, User
from django.test import Client

from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.message.envelope import Attribute, pack_attributes
from reprocessing.domain.message.identity import key_hash
from reprocessing.models import Attempt, DeadLetterQueue, DlqCopy, FailureGroup, Lane, Letter, Payload, Source, Target
from reprocessing.store.ordering.lanes import database_now

_numbers = count(1)
HOUR = timedelta(hours=1)
LOOKS = ("view_parkedletter", "view_letter")
DECIDES = (*LOOKS, "release_parkedletter", "discard_parkedletter")


def person(name: str, *permissions: str) -> Client:
    """Somebody of the staff who sees all DLQs and may do just that, logged in; CSRF is enforced as in a browser."""
    user = User.objects.create_user(name, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=("view_all_dlqs", *permissions)))
    assert user.user_permissions.count() == 1 + len(permissions)
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)
    return client


def dlq(name: str = "shop-dlq") -> Source:
    """A dlq and the one queue whose letters die into it."""
    arn = f"arn:aws:sqs:us-east-1:0:{name}"
    watched = DeadLetterQueue.objects.create(name=name, url=f"http://127.0.0.1:9/0/{name}", arn=arn, region="us-east-1")
    target = Target.objects.create(arn=f"{arn}-source", url=f"http://127.0.0.1:9/0/{name}-o", region="us-east-1")
    return Source.objects.create(dlq=watched, arn=target.arn, target=target)


def parked(  # noqa: PLR0913  # all but the source are passed by name
    source: Source,
    *,
    key: str | None = None,
    body: bytes = b"{}",
    attributes: Mapping[str, Attribute] | None = None,
    reason: str = "attempts_spent",
    system: Mapping[str, str] | None = None,
) -> Letter:
    """A letter that was tried once, came back, and waits for a person; an hour old, with three hours left."""
    number = next(_numbers)
    now = database_now()
    lane, _ = Lane.objects.get_or_create(
        dlq=source.dlq, source=source, key_hash=b"%d" % number if key is None else key_hash(key),
        defaults={"key": key, "single": key is None},
    )  # fmt: skip
    letter = Letter.objects.create(
        dlq=source.dlq,
        source=source,
        target=source.target,
        lane=lane,
        message_id=f"message-{number}",
        state=LetterState.PARKED,
        planned=True,
        ordering_key=key,
        sequence=f"{number:09}",
        reason=reason,
        attempts=1,
        body_hash=b"%d" % number,
        size=len(body),
        first_sent_at=now - HOUR,
        expires_at=now + 3 * HOUR,
        finished_at=now,
    )
    Payload.objects.create(
        letter=letter,
        body=body,
        attributes=pack_attributes(attributes or {}),
        system=system or {"SenderId": "AIDA-shop"},
    )
    tried_again(letter, no=1, epoch=0, fence=1, closed_at=now, outcome="returned", sent_message_id=f"sent-{number}")
    return letter


def failure_group(source: Source, title: str = "KeyError", **fields: Any) -> FailureGroup:  # noqa: ANN401
    now = database_now()
    values = {
        "dlq": source.dlq, "fingerprint": f"{title} {next(_numbers)}".encode(), "cause": "reported", "title": title,
        "first_at": now - 2 * HOUR, "last_at": now - HOUR,
    }  # fmt: skip
    return FailureGroup.objects.create(**{**values, **fields})


def held_copy(letter: Letter, **fields: Any) -> None:  # noqa: ANN401
    values = {"message_id": letter.message_id, "state": "held", "handle": "secret-handle"}
    times = {"visible_until": database_now(), "expires_at": letter.expires_at}
    DlqCopy.objects.create(dlq=letter.dlq, letter=letter, **{**values, **times, **fields})


def tried_again(letter: Letter, **fields: Any) -> Attempt:  # noqa: ANN401
    """Create the second attempt of a letter, which is open."""
    values = {"lane": letter.lane, "target": letter.target, "no": 2, "epoch": 1, "fence": 2, "holds_lane": False}
    return Attempt.objects.create(letter=letter, **{**values, "opened_at": database_now(), **fields})


def token(client: Client, address: str) -> str:
    client.get(address)
    return client.cookies["csrftoken"].value


def revealed(client: Client, letter: Letter, desk: str = "letter") -> str:
    given = {"csrfmiddlewaretoken": token(client, "/admin/password_change/")}
    answer = client.post(f"/admin/reprocessing/{desk}/{letter.pk}/reveal", given)
    assert answer.status_code == 200
    return answer.content.decode()


def post(client: Client, address: str, **values: object) -> str:
    """What a browser's form would have sent, and the page that came of it, redirects followed."""
    given = {"csrfmiddlewaretoken": token(client, "/admin/password_change/")} | values
    answer = client.post(address, given, follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def seen_state(client: Client, address: str) -> str:
    """What a confirmation page carries of the state that it shows."""
    return str(client.get(address).context["form"]["seen"].value())


def confirm(client: Client, address: str, **given: object) -> str:
    """Open a confirmation page and submit it; the page that follows."""
    return post(client, address, **{"seen": seen_state(client, address), "reason": "a test", **given})
