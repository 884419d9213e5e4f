"""What the doors enqueue, kept instead of sent; what they ask of SQS; and how many statements they need."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from celery.app.task import Task


@dataclass(frozen=True)
class Message:
    """A task message: its task, that task's arguments, and how it was enqueued."""

    task: Task[Any, Any]
    args: tuple[Any, ...]
    options: dict[str, Any]

    @property
    def name(self) -> str:
        """The task's, without the project's."""
        return str(self.task.name).removeprefix("reprocessing.")

    def work(self) -> None:
        """What a worker does with it."""
        self.task(*self.args, **self.options.get("kwargs", {}))


@dataclass
class Post:
    """The messages, in their order."""

    messages: list[Message] = field(default_factory=list)

    def of(self, name: str) -> list[tuple[Any, ...]]:
        """The arguments of the messages for this task."""
        return [one.args for one in self.messages if one.name == name]

    def hinted(self) -> list[int]:
        """The lanes that replay was told of."""
        return [lane for (lanes,) in self.of("replay_lanes") for lane in lanes]

    def take(self) -> list[Message]:
        """All messages, which leave the queues."""
        taken, self.messages = self.messages, []
        return taken

    def work_off(self) -> list[Message]:
        """Work on messages until there are none; those that there were."""
        done: list[Message] = []
        while taken := self.take():
            for one in taken:
                one.work()
            done += taken
        return done


@pytest.fixture
def post(monkeypatch: pytest.MonkeyPatch) -> Post:
    """Every message that is enqueued."""
    ours = Post()

    def enqueue(task: Task[Any, Any], args: tuple[Any, ...] = (), **options: Any) -> None:  # noqa: ANN401
        json.dumps(args)  # ids only, as JSON
        ours.messages.append(Message(task, tuple(args), options))

    monkeypatch.setattr(Task, "apply_async", enqueue)
    return ours


def asked(url: str) -> list[str]:
    """The actions that a queue of the local SQS was asked for, in their order."""
    name, since, end, found = url.rsplit("/", 1)[-1], 0, 1, list[str]()
    while since < end:
        asking = f"{os.environ['AWS_ENDPOINT_URL_SQS']}/_sandbox/calls?queue={name}&since={since}"
        with urllib.request.urlopen(asking, timeout=30) as answer:
            page = json.load(answer)
        found += [call["action"] for call in page["calls"]]
        since, end = page["next"], page["end"]
    return found


@contextmanager
def statements() -> Iterator[list[str]]:
    """Every statement that this process sends to Postgres meanwhile, on whatever connection."""
    sent: list[str] = []
    execute, executemany = psycopg.Cursor.execute, psycopg.Cursor.executemany

    def once(cursor: Any, query: Any, *rest: Any, **options: Any) -> Any:  # noqa: ANN401
        sent.append(str(query))
        return execute(cursor, query, *rest, **options)

    def often(cursor: Any, query: Any, many: Any, **options: Any) -> None:  # noqa: ANN401
        many = list(many)
        sent.extend([str(query)] * len(many))
        executemany(cursor, query, many, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psycopg.Cursor, "execute", once)
        patch.setattr(psycopg.Cursor, "executemany", often)
        yield sent
