"""What looking at a target's health can find. Only `Healthy` lets letters go: who does not know says so, and waits."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Healthy:
    """It was looked at, and is well."""

    detail: str = ""


@dataclass(frozen=True, slots=True)
class Unhealthy:
    """It was looked at, and is not well."""

    why: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """It could not be looked at. The gate is closed as well; what is to be mended is on our side."""

    why: str


Finding = Healthy | Unhealthy | Unknown


def within(what: str, found: float, ceiling: float, unit: str) -> Finding:
    """Whether what was found is at most its ceiling.

    Args:
        what: a few words, such as "its depth".
        found: the number found.
        ceiling: the most that is well.
        unit: of both, such as "messages".
    """
    if found <= ceiling:
        return Healthy(f"{what} is {found:,.15g} {unit}")
    return Unhealthy(f"{what} is {found:,.15g} {unit}, above its ceiling of {ceiling:,.15g}")
