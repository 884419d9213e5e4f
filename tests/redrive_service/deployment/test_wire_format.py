"""Two versions take each other's task messages from the same queues (docs/adr/0049)."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import pytest

from redrive_service.broker import envelope
from redrive_service.celery import app

#: What messages of released versions carry. An entry may be added. One that is changed or removed fails on workers of
#: the other version: give a new argument a default and pass it by name; keep a removed task for one more release.
ARGUMENTS = {
    "redrive_service.forget_sign_ins": (),
    "reprocessing.capture": ("dlq_id",),
    "reprocessing.check_conditions": (),
    "reprocessing.check_targets": (),
    "reprocessing.delete_expired": (),
    "reprocessing.discover_dlqs": (),
    "reprocessing.enlist_letters": (),
    "reprocessing.poll_dlqs": ("dlq_ids",),
    "reprocessing.publish_to_cloudwatch": (),
    "reprocessing.recover": (),
    "reprocessing.replay_lanes": ("lane_ids",),
    "reprocessing.reroute_letters": (),
    "reprocessing.resolve_outcomes": (),
    "reprocessing.run_bulk_action": ("operation_id",),
    "reprocessing.run_doctor": (),
    "reprocessing.send_notifications": (),
    "reprocessing.tick": (),
}


def tasks() -> dict[str, Any]:
    app.loader.import_default_modules()
    return {name: task for name, task in app.tasks.items() if name.startswith(("reprocessing.", "redrive_service."))}


def test_tasks_take_the_arguments_that_other_versions_send() -> None:
    required = {
        name: tuple(
            one.name for one in parameters(task) if one.default is one.empty and one.kind is not one.VAR_KEYWORD
        )
        for name, task in tasks().items()
    }
    assert required == ARGUMENTS


def test_every_task_ignores_arguments_of_a_later_version() -> None:
    assert [
        name for name, task in tasks().items() if parameters(task)[-1].kind is not inspect.Parameter.VAR_KEYWORD
    ] == []


def parameters(task: Any) -> list[inspect.Parameter]:  # noqa: ANN401  # Celery is untyped
    return list(inspect.signature(task.run).parameters.values())


def message(**headers: object) -> SimpleNamespace:
    return SimpleNamespace(
        headers={"task": "reprocessing.tick", "id": "1", **headers},
        content_type="application/json",
        content_encoding="utf-8",
        body='[[], {"of_a_later_version": 1}, {}]',
    )


def test_an_envelope_with_a_header_of_a_later_version_is_accepted() -> None:
    envelope.check(message(of_a_later_version={"any": "thing"}))


def test_an_envelope_whose_known_header_has_another_form_is_refused_and_left_to_sqs() -> None:
    with pytest.raises(envelope.EnvelopeIsUnusable, match=r"^eta$"):
        envelope.check(message(eta="2100-01-01T00:00:00+00:00"))
