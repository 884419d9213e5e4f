"""Templates name only static files that exist: in production, a wrong name is an error page."""

from __future__ import annotations

import re
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles import finders

_STATIC = re.compile(r"\{%-?\s*static\s+[\"']([^\"']+)[\"']")


def test_every_static_file_that_a_template_names_exists() -> None:
    templates = [
        file for part in ("reprocessing", "redrive_service") for file in Path(settings.BASE_DIR, part).rglob("*.html")
    ]
    named = {name for file in templates for name in _STATIC.findall(file.read_text(encoding="utf-8"))}
    assert "reprocessing/admin.css" in named
    assert sorted(name for name in named if finders.find(name) is None) == []
