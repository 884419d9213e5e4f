"""Define the results of a health check. Only `Healthy` allows sending."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Healthy:
    """The target is healthy."""

    detail: str = ""


@dataclass(frozen=True, slots=True)
class Unhealthy:
    """The target is not healthy."""

    why: str


@dataclass(frozen=True, slots=True)
class HealthUnknown:
    """The service could not make the check, such as without a permission, so nothing is sent."""

    why: str


HealthResult = Healthy | Unhealthy | HealthUnknown


def within_ceiling(what: str, found: float, ceiling: float, unit: str) -> HealthResult:
    """Return `Healthy` if `found` is at most `ceiling`, else `Unhealthy`.

    `what` and `unit` are words for the result's text, such as "its depth" and "messages".
    """
    if found <= ceiling:
        return Healthy(f"{what} is {found:,.15g} {unit}")
    return Unhealthy(f"{what} is {found:,.15g} {unit}, above its ceiling of {ceiling:,.15g}")
