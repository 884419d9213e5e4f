"""What commands refuse, in their words."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from reprocessing.models import AuditEntry


def refusal(*arguments: str) -> str:
    with pytest.raises(CommandError) as refused:
        call_command(*arguments, stdout=StringIO(), stderr=StringIO())
    return str(refused.value)


def findings(found: Any, severity: str, part: str = "what") -> list[str]:  # noqa: ANN401  decoded JSON
    return [one[part] for one in found["findings"] if one["severity"] == severity]


def refused(*arguments: str, part: str = "what") -> list[str]:
    """What an examination refuses; the command fails, and nothing is written."""
    before, out = AuditEntry.objects.count(), StringIO()
    with pytest.raises(CommandError, match="nothing was saved"):
        call_command(*arguments, "--confirm", "--json", stdout=out)
    assert AuditEntry.objects.count() == before
    return findings(json.loads(out.getvalue()), "refuse", part)
