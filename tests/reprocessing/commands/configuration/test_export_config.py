"""An export is the configuration, and nothing else: the same text each time, which editors and apply_config accept."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from reprocessing.domain.configuration.keys import Kind
from reprocessing.models import DeadLetterQueue, Rule
from reprocessing.pipeline.configuration.export_text import export_text
from reprocessing.store.configuration import state
from tests.contract.queues import redrive_policy
from tests.reprocessing.commands.configuration.conftest import MARKED, Apply, Shop
from tests.reprocessing.commands.conftest import Ask
from tests.reprocessing.gateways.aws_endpoint import MakeQueue

pytestmark = pytest.mark.django_db
DOCS = Path(__file__).resolve().parents[4] / "docs"


@pytest.mark.soak
def test_what_was_set_by_commands_is_exported_and_applied_without_a_change(
    ask: Ask, apply: Apply, make_queue: MakeQueue
) -> None:
    shop, fifo = Shop(make_queue), Shop(make_queue, fifo=True)
    ask("add_dlq", "orders", "--url", shop.dlq.url, "--every", "90", "--ramp-from", "off", "--confirm")
    ask("add_dlq", "fifo", "--url", fifo.dlq.url, "--give-up-after", "off", "--crontab", "*/5 * * * *", "--confirm")
    ask("add_target", "https://shop.example.com/orders", "--timeout", "5", "--rate", "off", "--confirm")
    ask("check_health", "orders", "--http", "https://shop.example.com/up", "--status", "204", "--reason", "x",
        "--confirm")  # fmt: skip
    ask("add_rate_class", "bulk", "--rate", "0.5", "--reason", "x", "--confirm")
    ask("add_rule", "late", "--every-message", "--then", "delay", "--delay", "60", "--rate-class", "bulk",
        "--until", "2030-01-01T00:00:00Z", "--reason", "x", "--confirm")  # fmt: skip
    ask("add_rule", "early", "--when", "type in off,on", "--then", "divert", "--to",
        "https://shop.example.com/orders", "--reason", "x", "--enable", "--confirm")  # fmt: skip
    ask("set_notification", "team-a", "--dlq", "orders", "--confirm")
    exported = ask("export_config")
    assert exported == ask("export_config")
    assert apply(exported) == MARKED
    assert apply(exported) == "No changes.\n"
    assert list(yaml.safe_load(exported)["rules"]) == ["late", "early"]


def test_an_empty_database_is_exported_as_empty_sections(ask: Ask) -> None:
    exported = ask("export_config")
    assert exported.splitlines()[0] == "# yaml-language-server: $schema=redrive.schema.json"
    assert yaml.safe_load(exported) == {kind.value: {} for kind in Kind}


def test_the_schema_is_published_and_accepts_what_is_exported(ask: Ask, apply: Apply, shop: Shop) -> None:
    schema = json.loads(ask("export_config", "--schema"))
    assert json.loads((DOCS / "redrive.schema.json").read_text(encoding="utf-8")) == schema
    apply(
        f"policies:\n  careful:\n    give_up_after: off\ndlqs:\n  orders:\n    url: {shop.dlq.url}\n"
        "    policy: careful\nrules:\n  hold:\n    when: []\n    then: hold\n    enabled: true\n"
        "notifications:\n  ops:\n    events: [beat_silent]\n"
    )
    exported = yaml.safe_load(ask("export_config"))
    assert list(errors(schema, exported)) == []
    exported["dlqs"]["orders"]["max_attempts"] = 0
    exported["rules"]["hold"]["thn"] = "hold"
    assert list(errors(schema, exported)) == ["dlqs.orders.max_attempts", "rules.hold.thn"]


def errors(schema: dict[str, Any], value: Any, path: str = "") -> Any:  # noqa: ANN401  decoded JSON
    """The paths of values that a schema refuses; of JSON Schema, only the words that ours uses."""
    if isinstance(value, dict):
        known = schema.get("properties", {})
        for name, its in value.items():
            rest = known.get(name, schema.get("additionalProperties"))
            if rest is False:
                yield f"{path}.{name}".strip(".")
            else:
                yield from errors(rest or {}, its, f"{path}.{name}".strip("."))
        return
    kinds: dict[str, Any] = {
        "string": str,
        "integer": int,
        "number": (int, float),
        "boolean": bool,
        "array": list,
        "null": type(None),
    }
    one_of = schema.get("anyOf", [schema])
    wanted = [one["type"] if isinstance(one.get("type"), list) else [one.get("type")] for one in one_of]
    fits = any(
        ("const" in one and value == one["const"])
        or ("enum" in one and value in one["enum"])
        or (
            any(name in kinds and isinstance(value, kinds[name]) for name in names)
            and not (isinstance(value, int | float) and value < one.get("minimum", value))
        )
        for one, names in zip(one_of, wanted, strict=True)
    )
    if not fits:
        yield path


@pytest.mark.soak
def test_the_example_of_the_docs_is_applied_and_exported_as_it_stands(
    ask: Ask, apply: Apply, make_queue: MakeQueue
) -> None:
    """The queues of the example get names of this test; nothing else changes."""
    example = re.findall(r"```yaml\n(.*?)```", (DOCS / "configuration.md").read_text(encoding="utf-8"), re.DOTALL)[0]
    shop = Shop(make_queue)
    text = example.replace("https://sqs.eu-west-1.amazonaws.com/111122223333/orders-dlq", shop.dlq.url)
    text = text.replace("arn:aws:sqs:eu-west-1:111122223333:orders", shop.source.arn)
    assert apply(text).splitlines()[-1] == "Applied: 7 objects added."
    assert (DeadLetterQueue.objects.get().max_attempts, Rule.objects.get().enabled) == (7, True)
    assert set(yaml.safe_load(text)) == set(yaml.safe_load(export_text(state.read_state())))
    assert apply(text) == "No changes.\n"


@pytest.mark.soak
def test_a_queue_with_a_redrive_policy_of_its_own_keeps_that_its_copies_are_deleted_at_once(
    ask: Ask, apply: Apply, make_queue: MakeQueue
) -> None:
    shop = Shop(make_queue)
    shop.dlq.set(RedrivePolicy=redrive_policy(make_queue(), 5))
    file = f"dlqs:\n  orders:\n    url: {shop.dlq.url}\n"
    apply(file)
    assert DeadLetterQueue.objects.get().delete_when == "captured"
    assert apply(file) == "No changes.\n"
    assert "delete_when: captured" in ask("export_config")
    assert apply(ask("export_config")) == MARKED
    assert apply(ask("export_config")) == "No changes.\n"
