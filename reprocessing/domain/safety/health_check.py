"""Define the results of a health check. Only `Healthy` allows sending."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Healthy:
    """The check found the target healthy, so messages may be sent. `detail`: what was found."""

    detail: str = ""


@dataclass(frozen=True, slots=True)
class Unhealthy:
    """The check found that the target is not healthy, so nothing is sent. `why`: what was found."""

    why: str


@dataclass(frozen=True, slots=True)
class HealthUnknown:
    """The check could not be made, for example because a permission is missing, so nothing is sent."""

    why: str


HealthResult = Healthy | Unhealthy | HealthUnknown


def within_ceiling(what: str, found: float, ceiling: float, unit: str) -> HealthResult:
    """Return `Healthy` if the value `found` is at most `ceiling`, else `Unhealthy`.

    `what` and `unit` are words for the result's text, such as "its depth" and "messages".
    """
    if found <= ceiling:
        return Healthy(f"{what} is {found:,.15g} {unit}")
    return Unhealthy(f"{what} is {found:,.15g} {unit}, above its ceiling of {ceiling:,.15g}")
