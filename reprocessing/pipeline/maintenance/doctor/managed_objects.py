"""Find drift: objects of a configuration file that people changed or unlocked by hand after the last apply."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import Any, Final
from urllib.parse import urlsplit

from reprocessing.domain.configuration.changes import Action, FieldChange
from reprocessing.domain.configuration.keys import Kind
from reprocessing.domain.maintenance.findings import DoctorFinding, note_finding, warning_finding
from reprocessing.domain.message.safe_text import visible
from reprocessing.pipeline.configuration.export_text import shown
from reprocessing.store.configuration import managed
from reprocessing.store.configuration.managed import Drift

_WHY: Final = "The next apply of the file would undo the change."
_CURE: Final = "Apply the file again, or copy the change into the file from the output of: manage.py export_config"
#: Max objects that are told one by one, max settings of an object, and max characters of a value.
_OBJECTS: Final = 20
_SETTINGS: Final = 8
_LONGEST: Final = 60
_BEFORE: Final = 10  #: characters of a long value that are shown before its first difference
#: Keys whose values are secrets, or names of secrets.
_SECRETS: Final = frozenset({"secret"})
#: A URL, with all text after it, since a password or a path may have any character.
_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://.*", re.IGNORECASE | re.DOTALL)


def findings() -> Iterator[DoctorFinding]:
    """Yield a warning for each object of a configuration file that was changed by hand, and a note if only unlocked.

    Raises:
        django.db.Error: PostgreSQL does not answer.
    """
    drifts = managed.find_drift()
    for drift in drifts[:_OBJECTS]:
        yield _finding(drift)
    if len(drifts) > _OBJECTS:
        what = f"And {len(drifts) - _OBJECTS:,} more objects were changed, removed or unlocked by hand."
        yield warning_finding("configuration file", what, _WHY, _CURE)


def _finding(drift: Drift) -> DoctorFinding:
    name = str(drift.mark)
    unlocked = _unlocked(drift)
    if drift.change is None:
        return note_finding(name, unlocked, "The next apply of the file locks it.")
    if drift.change.action is Action.REMOVE:
        return warning_finding(name, f"It was removed by hand. {unlocked}".rstrip(), _WHY, _CURE)
    what = f"It was changed after its file was applied: {'; '.join(_differences(drift))}. {unlocked}".rstrip()
    return warning_finding(name, what, _WHY, _CURE)


def _differences(drift: Drift) -> Iterator[str]:
    """Yield a text for each changed setting, with its value in the file and its value now.

    Only 8 settings are shown. A last text says how many others changed.
    """
    fields = drift.change.fields if drift.change else ()
    if not fields:
        before, after = ((settings or {}).get("own_settings") for settings in (drift.mark.written, drift.now))
        fields = (FieldChange("own settings", before, after),)
    yield from (_difference(Kind(drift.mark.kind), field) for field in fields[:_SETTINGS])
    if len(fields) > _SETTINGS:
        yield f"and {len(fields) - _SETTINGS} more settings"


def _difference(kind: Kind, field: FieldChange) -> str:
    if field.key in _SECRETS:
        return f"{field.key} (values are not shown)"
    before, after = (_shown(kind, field.key, value) for value in (field.before, field.after))
    if before == after:
        return f"{field.key} differs in a part of a URL that is not shown"
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
    return f"{field.key} is {_cut(after, same)}, in the file {_cut(before, same)}"


def _shown(kind: Kind, key: str, value: Any) -> str:  # noqa: ANN401  a JSON value
    if kind is Kind.POLICY and value is None:
        return "not set"
    return visible(shown(key, _covered(value)))


def _covered(value: Any) -> Any:  # noqa: ANN401  a JSON value
    """Return a JSON value in which only scheme and host of each URL are left.

    The other parts of a URL may have a password or a token, which must not be shown.
    """
    match value:
        case str():
            return _URL.sub(lambda found: _covered_url(found[0]), value)
        case list():
            return [_covered(member) for member in value]
        case dict():
            return {_covered(name): _covered(member) for name, member in value.items()}
        case _:
            return value


def _covered_url(url: str) -> str:
    scheme, _, rest = url.partition("://")
    try:
        parts = urlsplit(url)
    except ValueError:
        return f"{scheme}://…"
    host = parts.hostname or ""
    if rest.rstrip("/") == host:
        return url
    is_certain = "@" not in rest.removeprefix(parts.netloc)  # else, the host may be a part of a password with a slash
    return f"{scheme}://{host}/…" if host and is_certain else f"{scheme}://…"


def _cut(text: str, same: int) -> str:
    """Shorten a long text so that the part is shown in which it differs from another text.

    `same`: how many characters at the beginning are equal in both texts.
    """
    if len(text) <= _LONGEST:
        return text
    start = max(0, same - _BEFORE) if same >= _LONGEST else 0
    end = start + _LONGEST
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")


def _unlocked(drift: Drift) -> str:
    mark = drift.mark
    return f"{mark.unlocked_by} unlocked it: {mark.unlock_reason}." if mark.unlocked_at else ""
