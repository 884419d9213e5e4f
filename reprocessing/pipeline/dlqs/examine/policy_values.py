"""Add the settings of a DLQ's policy (named settings for several DLQs) to the options that a person gave."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from reprocessing.domain.configuration.keys import POLICY_FIELDS, effective
from reprocessing.models import DeadLetterQueue
from reprocessing.pipeline.dlqs.examine.gathered import Wanted
from reprocessing.store.configuration import policies
from reprocessing.store.configuration.defaults import dlq_defaults

#: Of these fields, at most one is set.
_SCHEDULES: Final = frozenset({"interval", "crontab"})


def with_policy(wanted: Wanted) -> Wanted:
    """Return the options that a person gave. Where the person gave no option, the setting of the DLQ's policy is added.

    The result also lists the DLQ's own settings (`own_settings`), which the policy does not change: the given options,
    and stored settings that differ from the default and that the policy does not have.

    Raises:
        InvalidPolicy: no policy has this name.
    """
    if "own_settings" in wanted.dlq:
        return wanted
    given = {name: value for name, value in wanted.dlq.items() if name in POLICY_FIELDS}
    if "policy" in wanted.dlq:
        row = policies.find_policy(wanted.dlq["policy"])
        inherited: dict[str, Any] = row.settings if row else {}
        own = sorted({*given, *_kept(wanted.name, inherited)}) if row else []
        return replace(wanted, dlq={**wanted.dlq, **effective(given, inherited, {}), "own_settings": own})
    held = DeadLetterQueue.objects.filter(name=wanted.name, policy__isnull=False).first()
    if held is None or not given:
        return wanted
    return replace(wanted, dlq={**wanted.dlq, "own_settings": sorted({*held.own_settings, *given})})


def _kept(name: str, inherited: dict[str, Any]) -> list[str]:
    row = DeadLetterQueue.objects.filter(name=name).first()
    if row is None:
        return []
    defaults = dlq_defaults(fifo=row.fifo)
    decided = {*inherited, *(_SCHEDULES if inherited.keys() & _SCHEDULES else ())}
    return [field for field in POLICY_FIELDS if field not in decided and getattr(row, field) != defaults[field]]
