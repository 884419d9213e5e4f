"""Read the variables of this installation: mode, name, colour, and CloudWatch namespace."""

from __future__ import annotations

import re
from typing import Literal

from redrive_service.environment.variables import Variables
from reprocessing.domain.configuration.setting_problems import COLOURS, LONGEST_PLACE

Mode = Literal["production", "sandbox"]
_NAMESPACE = re.compile(r"(?!AWS/)[A-Za-z0-9._/#:-]{1,40}")  # as in AWS's PutMetricData, but at most 40 characters


def mode(variables: Variables) -> Mode:
    """Return the mode: sandbox if REDRIVE_MODE says so, else production."""
    value = variables.value("REDRIVE_MODE") or "production"
    if value == "sandbox":
        return "sandbox"
    if value != "production":
        variables.problems.append("REDRIVE_MODE is neither production (the default) nor sandbox. Unset it.")
    return "production"


def place(variables: Variables) -> str:
    """Return the installation's name (REDRIVE_PLACE), which every admin page shows. The default is the mode."""
    value = variables.value("REDRIVE_PLACE") or variables.value("REDRIVE_MODE")
    if len(value) > LONGEST_PLACE or not value.isprintable():
        at_most = f"at most {LONGEST_PLACE} characters that can be seen"
        variables.problems.append(f"REDRIVE_PLACE cannot be shown: it must have {at_most}. Correct it.")
    return value or "production"


def colour(variables: Variables) -> str:
    """Return the installation's colour, which every admin page shows. The default is green in a sandbox, else red."""
    value = variables.value("REDRIVE_COLOUR")
    if value and value not in COLOURS:
        variables.problems.append(f"REDRIVE_COLOUR must be one of {', '.join(COLOURS)}.")
    return value or ("green" if variables.value("REDRIVE_MODE") == "sandbox" else "red")


def cloudwatch(variables: Variables) -> str:
    """Return the CloudWatch namespace of the service's metrics, or "" if no metrics are sent to CloudWatch."""
    value = variables.value("REDRIVE_CLOUDWATCH")
    if value and not _NAMESPACE.fullmatch(value):
        variables.problems.append("REDRIVE_CLOUDWATCH is not a namespace of metrics. Example: Redrive/Production.")
    return value
