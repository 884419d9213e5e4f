"""Index the values of search fields again after a setting changed: search fields, masked fields, or encryption.

If the process is killed, the next call continues.
"""

from __future__ import annotations

import time
from dataclasses import replace

from reprocessing.domain.errors import PayloadKeyUnavailable
from reprocessing.domain.message.envelope import unpack_attributes
from reprocessing.domain.message.identity import LetterFacts
from reprocessing.domain.search.search_fields import values_of
from reprocessing.store.search import reindexing, search_entries, search_settings
from reprocessing.store.search.reindexing import Part
from reprocessing.store.search.search_entries import Entry
from reprocessing.store.search.search_settings import SearchSettings


def reindex_dlqs(*, seconds: float) -> bool:
    """Index letters again, in batches, for about `seconds`. Return whether all letters are indexed.

    Raises:
        PayloadKeyUnavailable: letters of a DLQ cannot be decrypted or indexed now. The next call tries them again. The
            other DLQs are indexed.
    """
    ends = time.monotonic() + seconds
    for settings in search_settings.all_settings():
        if settings.is_current:
            continue
        if settings.is_stale and not search_settings.index_again(settings):
            return False
    failed: PayloadKeyUnavailable | None = None
    for settings in search_settings.all_settings():
        try:
            if not _reindex(settings, ends=ends):
                return False
        except PayloadKeyUnavailable as error:
            failed, ends = failed or error, time.monotonic() + seconds  # AWS KMS may have taken the time
    if failed:
        raise failed
    return True


def _reindex(settings: SearchSettings, *, ends: float) -> bool:
    while settings.below is not None:
        if time.monotonic() >= ends:
            return False
        part = reindexing.next_part(settings)
        letters, entries = _entries(settings, part) if settings.fields else ([], [])
        if not reindexing.write_part(settings, part, letters, entries):
            return False
        settings = replace(settings, below=part.next or None)
    return True


def _entries(settings: SearchSettings, part: Part) -> tuple[list[int], list[Entry]]:
    letters, entries = list[int](), list[Entry]()
    hasher = search_entries.hasher_of(settings.id)
    for message in reindexing.messages_of(part):
        facts = LetterFacts(message.message_id, message.body, unpack_attributes(message.attributes), message.system)
        found = search_entries.stored_entries(values_of(settings.fields, facts, settings.rules), hasher)
        letters += [message.id] * len(found)
        entries += found
    return letters, entries
