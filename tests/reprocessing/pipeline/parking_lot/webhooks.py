"""Webhook bodies as a code host sends them: 60 event types, whose optional keys vary from message to message."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from reprocessing.domain.message.envelope import Attribute, Attributes

#: Keys that most events have, and keys that only some installations or actions send.
_COMMON: Final = ("action", "repository", "sender")
_OPTIONAL: Final = ("organization", "installation", "enterprise", "changes")
_THINGS: Final = (
    "branch_protection_rule", "check_run", "check_suite", "code_scanning_alert", "commit_comment", "content_reference",
    "custom_property", "dependabot_alert", "deploy_key", "deployment", "deployment_status", "discussion", "fork",
    "hook", "issue", "label", "marketplace_purchase", "member", "membership", "merge_group", "milestone", "package",
    "page_build", "personal_access_token_request", "project", "project_card", "project_column", "projects_v2",
    "pull_request", "registry_package", "release", "repository_advisory", "repository_import", "ruleset",
    "secret_scanning_alert", "security_advisory", "security_and_analysis", "sponsorship", "starred", "status_context",
    "sub_issue", "team", "team_add", "watch", "workflow_dispatch", "workflow_job", "workflow_run",
)  # fmt: skip
_PAIRS: Final = (
    ("comment", "issue"), ("review", "pull_request"), ("thread", "pull_request"), ("answer", "discussion"),
    ("alert", "location"), ("blocked_user", "account"), ("invitation", "user"), ("rule", "actor"),
    ("commits", "pusher"), ("pages", "wiki"), ("ref", "master_branch"), ("from_repository", "owner"),
    ("marketplace", "effective_date"),
)  # fmt: skip
#: The keys of each event type that no other type has together.
TYPES: Final = tuple((thing,) for thing in _THINGS) + _PAIRS


@dataclass(frozen=True, slots=True)
class Webhook:
    """A message and the event type that it is of, which its body does not say."""

    type: str
    body: str
    attributes: Attributes


def webhooks(n: int, *, seed: int, typed: bool = False) -> Iterator[Webhook]:
    """Yield `n` webhooks in a random order. `typed`: the header that the producer set comes along as an attribute."""
    dice = random.Random(seed)
    events = [TYPES[no % len(TYPES)] for no in range(n)]
    dice.shuffle(events)
    for keys in events:
        kept = [key for key in _OPTIONAL if dice.random() < 0.4]
        body: dict[str, Any] = {key: _value(key, dice) for key in (*_COMMON, *keys, *kept)}
        items = list(body.items())
        dice.shuffle(items)
        name = "_".join(keys)
        yield Webhook(name, json.dumps(dict(items)), {"X-GitHub-Event": Attribute("String", name)} if typed else {})


def _value(key: str, dice: random.Random) -> Any:  # noqa: ANN401  JSON
    if key == "action":
        return dice.choice(["opened", "closed", "edited", "created", "deleted", "labeled"])
    number = dice.randrange(10**9)
    return {"id": number, "node_id": f"MDQ6{number:x}", "url": f"https://api.example.com/{key}/{number}", "name": key}
