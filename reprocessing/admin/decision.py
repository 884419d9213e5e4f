"""What a person decides about letters of the parking lot, from the page they saw to the deed.

A page can lie: somebody else may have decided meanwhile, and a letter released may be parked again for another reason.
So a page carries, with each letter, since when it was parked; only a letter parked since that very moment is touched.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import assert_never

from django import forms
from django.db import transaction

from reprocessing.models import DeadLetter, parking
from reprocessing.pipeline import park
from reprocessing.pipeline.park import Reviewed

#: Letters that one page decides about; more of them are a matter for the commands and their filters.
MOST = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_SEEN = re.compile(r"(\d{1,18})@(\d{1,18})")
_CHANGED = "it was parked anew since you looked; look again"


class Deed(StrEnum):
    """What can be decided."""

    RELEASE = "release"
    DISCARD = "discard"


Seen = Mapping[int, int]  # when each letter was parked, in microseconds since 1970


class Decision(forms.Form):
    """The letters of a page, as they were seen, and why."""

    letters = forms.CharField(widget=forms.HiddenInput)
    reason = forms.CharField(
        max_length=2_000,
        widget=forms.Textarea(attrs={"rows": 3, "cols": 80, "autofocus": True}),
        help_text="Recorded with your name, for whoever asks later.",
    )

    def clean_letters(self) -> Seen:
        """The letters by id."""
        return unpacked(self.cleaned_data["letters"])


def packed(letters: Iterable[DeadLetter]) -> str:
    """Parked letters as a page carries them."""
    return ",".join(f"{one.pk}@{_stamp(one.finished_at)}" for one in letters if one.finished_at is not None)


def unpacked(text: str) -> Seen:
    """The letters that a page carried.

    Raises:
        forms.ValidationError: no page of ours wrote this, or it names too many.
    """
    found = [_SEEN.fullmatch(part) for part in text.split(",")]
    seen = {int(one[1]): int(one[2]) for one in found if one}
    if not seen or not all(found):
        raise forms.ValidationError("These letters cannot be read. Go back to the list and select them again.")
    if len(seen) > MOST:
        raise forms.ValidationError(f"These are more than {MOST:,} letters. Select fewer.")
    return seen


def decide(deed: Deed, seen: Seen, *, by: str, reason: str) -> Reviewed:
    """Do it to the letters that are parked as they were seen; why each of the others was left alone."""
    with transaction.atomic():
        parking.lock(seen.keys(), need_lane=False)  # from here until the commit nobody parks or moves them
        changed = _changed(seen)
        reviewed = _act(deed, seen.keys() - changed, by, reason)
    return Reviewed(reviewed.done, reviewed.refused | dict.fromkeys(changed, _CHANGED))


def _act(deed: Deed, letters: Collection[int], by: str, reason: str) -> Reviewed:
    match deed:
        case Deed.RELEASE:
            return park.release(letters, by=by, reason=reason)
        case Deed.DISCARD:
            return park.discard(letters, by=by, reason=reason)
        case _ as never:
            assert_never(never)


def _changed(seen: Seen) -> set[int]:
    """Those that are parked, but not since the moment that was seen."""
    parked = DeadLetter.objects.filter(pk__in=seen.keys(), state="parked").values_list("pk", "finished_at")
    return {letter for letter, since in parked if since is not None and _stamp(since) != seen[letter]}


def _stamp(since: datetime | None) -> int:
    return 0 if since is None else (since - _EPOCH) // _MICROSECOND
