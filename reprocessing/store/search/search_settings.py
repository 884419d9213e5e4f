"""Read which DLQs have search fields (fields by which people find messages), and whether all letters are indexed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Final

from reprocessing import conf
from reprocessing.domain.payloads.mask_rules import MaskRules, mask_rules
from reprocessing.domain.search.search_fields import SearchField, search_fields
from reprocessing.models import DeadLetterQueue
from reprocessing.store import rows
from reprocessing.store.payloads import payload_keys

#: A part of the settings' digest. Raise this number after a change of the code that indexes values.
_FORM: Final = 1

_ALL = """
SELECT id, name, search_fields AS declared, masked_fields AS masks, search_version AS version,
       search_indexed_for AS indexed_for, search_reindex_below AS below
  FROM redrive_dlq
 WHERE search_fields <> '{}' OR search_indexed_for <> '' OR search_reindex_below IS NOT NULL
 ORDER BY name
"""

# A concurrent capture waits for this update. As the version has changed, the capture then reads the settings again.
_RAISE_VERSION = """
UPDATE redrive_dlq SET search_version = search_version + 1, search_indexed_for = %(indexed_for)b::text,
       search_reindex_below = (SELECT coalesce(max(id), 0) + 1 FROM redrive_letter)
 WHERE id = %(dlq)b::bigint AND search_version = %(version)b::int
"""


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """A DLQ's search fields (`declared`) and mask rules (`masks`), as texts, and how far its letters are indexed.

    `indexed_for`: the digest of the settings with which letters were last indexed. `below`: letters with ids below this
    number must still be indexed again; None: all letters are indexed.
    """

    id: int
    name: str
    declared: list[str]
    masks: list[str]
    version: int
    indexed_for: str
    below: int | None

    @property
    def fields(self) -> tuple[SearchField, ...]:
        """Return the search fields."""
        return search_fields(tuple(self.declared))

    @property
    def rules(self) -> MaskRules:
        """Return the mask rules of the DLQ: its own, and the rules in the service's settings."""
        return mask_rules((*conf.current().masked_fields, *map(str, self.masks)))

    @property
    def digest(self) -> str:
        """Return a digest that changes if letters must be indexed again; empty: the DLQ has no search fields."""
        if not self.declared:
            return ""
        inputs = [_FORM, self.declared, self.masks, conf.current().masked_fields, payload_keys.encrypts()]
        return hashlib.sha256(json.dumps(inputs).encode()).hexdigest()[:16]

    @property
    def is_stale(self) -> bool:
        """Return whether the settings changed since letters were indexed, so that all must be indexed again."""
        return self.indexed_for != self.digest

    @property
    def is_current(self) -> bool:
        """Return whether the values of all letters are indexed for the present settings."""
        return self.below is None and not self.is_stale


def of_dlq(dlq: DeadLetterQueue) -> SearchSettings:
    """Return the search settings that this row of a DLQ has; nothing is read from the database."""
    return SearchSettings(
        dlq.pk, dlq.name, list(dlq.search_fields), list(dlq.masked_fields), dlq.search_version, dlq.search_indexed_for,
        dlq.search_reindex_below,
    )  # fmt: skip


def all_settings() -> list[SearchSettings]:
    """Return the settings of all DLQs with search fields, or with entries that must be removed, sorted by DLQ name."""
    return rows.fetch(SearchSettings, _ALL, {})


def index_again(settings: SearchSettings) -> bool:
    """Record that all letters must be indexed again for these settings; return False if the settings have changed."""
    values = {"dlq": settings.id, "version": settings.version, "indexed_for": settings.digest}
    return bool(rows.execute(_RAISE_VERSION, values))


def unmasked_dlqs(every: list[SearchSettings]) -> list[int]:
    """Return the ids of the DLQs in which everybody can search by fields, since it is known which values are masked.

    In other DLQs, only people who may reveal masked values find letters by search fields.
    """
    return [settings.id for settings in every if settings.is_current or not settings.rules]


def encrypts() -> bool:
    """Return whether new values are stored as keyed hashes, so that people cannot search by the first characters."""
    return payload_keys.encrypts()
