"""Plan which settings an apply of a configuration file changes, and find all problems of the file.

Nothing is written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

from reprocessing.conf import Conf
from reprocessing.domain.configuration.changes import Action, ObjectChange, compare
from reprocessing.domain.configuration.document import Problem
from reprocessing.domain.configuration.keys import KEYS, Kind, State
from reprocessing.pipeline.configuration import check_queues, check_settings
from reprocessing.pipeline.configuration.check_queues import Examined, ReportProgress, States
from reprocessing.pipeline.configuration.desired import desired_state
from reprocessing.store.configuration import managed, removals, state
from reprocessing.store.dlqs import automatic_redrive

__all__ = ["Plan", "is_current", "make_plan"]


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes that an apply makes.

    Attributes:
        given: the settings in the file.
        now: the stored settings.
        desired: the settings after the apply.
        changes: the changed objects, in the order of `Kind`, then as in the file; removals come last.
        missing: stored objects that are not in the file, and that the apply does not remove.
        problems: what must be corrected in the file before it can be applied.
        examined: the results of the examinations of queues and targets.
        marked: whether it is already recorded that the file manages these objects and settings.
        prune: whether objects are removed that are missing in a section of the file.
    """

    given: State
    now: State
    desired: State
    changes: tuple[ObjectChange, ...]
    missing: tuple[tuple[Kind, str], ...]
    problems: tuple[Problem, ...]
    examined: Examined = field(default_factory=Examined)
    marked: bool = True
    prune: bool = False

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to change."""
        return not self.changes and self.marked

    def still_sending(self) -> list[str]:
        """Return sentences about DLQs that the apply took out of mode automatic, but whose automatic run still sends.

        Each sentence has the command that pauses the run. Call this function after the apply.
        """
        changed = (one for one in self.changes if one.kind is Kind.DLQ and one.action is Action.CHANGE)
        names = [one.name for one in changed if any(field.key == "mode" for field in one.fields)]
        told = ((name, automatic_redrive.describe_still_sending(name)) for name in names)
        return [f"{name}: {text}" for name, text in told if text]


def make_plan(
    given: State, conf: Conf, *, prune: bool, refused: Collection[tuple[str, ...]] = (),
    progress: ReportProgress = lambda _done, _total: None,
) -> Plan:  # fmt: skip
    """Compare the file with the stored settings, and examine the queues and targets that change; return the plan.

    `given`: the settings in the file, by field name. `prune`: remove objects that are not in the file. `refused`:
    sections and names of objects in which problems were found already, so that AWS need not be asked about them.
    `progress`: called with the number of DLQs examined so far, and the number of all DLQs to examine.
    """
    now = state.read_state()
    wanted = desired_state(given, now, prune=prune)
    changes = tuple(_changes(given, now, wanted.state))
    read = [change for change in changes if (change.kind, change.name) not in refused]
    problems = [*wanted.problems, *check_settings.problems(read, given, now, wanted.state), *_objections(changes)]
    bad = {*refused, *(problem.path[:2] for problem in problems)}
    fine = [change for change in changes if (change.kind, change.name) not in bad]
    examined = check_queues.examine_changes(fine, States(given, now, wanted.state), conf, progress)
    return Plan(
        given=given,
        now=now,
        desired=wanted.state,
        changes=changes,
        missing=() if prune else wanted.missing,
        problems=(*problems, *examined.problems),
        examined=examined,
        marked=bool(changes) or managed.are_marked(objects_in_file(given, wanted.state)),
        prune=prune,
    )


def is_current(plan: Plan) -> bool:
    """Return whether the stored settings are still as they were when the plan was made."""
    return state.read_state() == plan.now


def objects_in_file(given: State, settings: State) -> State:
    """Return, of these settings, those of objects that are in the file. `given`: the settings in the file."""
    return {kind: {name: settings[kind][name] for name in names} for kind, names in given.items()}


def _changes(given: State, now: State, desired: State) -> Iterator[ObjectChange]:
    for kind in Kind:
        for name, settings in desired[kind].items():
            if (change := compare(kind, name, now[kind].get(name), settings)) is not None:
                yield _without_defaults(change, given, desired) if change.action is Action.ADD else change
    for kind in reversed(Kind):
        yield from (ObjectChange(kind, name, Action.REMOVE) for name in now[kind] if name not in desired[kind])


def _without_defaults(change: ObjectChange, given: State, desired: State) -> ObjectChange:
    """Return the change that adds an object, with only the settings that the file or the DLQ's policy has."""
    policy = desired[change.kind][change.name].get("policy") if change.kind is Kind.DLQ else None
    names = {*given[change.kind][change.name], *desired[Kind.POLICY].get(policy or "", ())}
    return replace(
        change, fields=tuple(setting for setting in change.fields if KEYS[change.kind].get(setting.key) in names)
    )


def _objections(changes: tuple[ObjectChange, ...]) -> Iterator[Problem]:
    for change in changes:
        if change.action is Action.REMOVE:
            yield from (
                Problem((change.kind, change.name), why) for why in removals.objections(change.kind, change.name)
            )
