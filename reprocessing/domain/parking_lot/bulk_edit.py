"""Describe one edit of many messages: a JSON Patch, and what happens to each message after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from reprocessing.domain.parking_lot.json_patch import JsonPatch

#: The name of the argument with the patch's text, in a stored bulk action or requested action. The text may have
#: message values.
PATCH: Final = "patch"


@dataclass(frozen=True, slots=True)
class BulkEdit:
    """One edit of many messages.

    Attributes:
        release: whether each edited message is also released.
        new_keys: whether each edited message gets a new idempotency key.
        changes_keys: whether the edit may change values from which the service reads the keys of a message.
    """

    patch: JsonPatch
    release: bool = False
    new_keys: bool = False
    changes_keys: bool = False

    @classmethod
    def read(cls, arguments: Mapping[str, Any]) -> BulkEdit:
        """Return the edit from the JSON values that `arguments` returned, or raise InvalidPatch."""
        given = {name: bool(arguments.get(name)) for name in ("release", "new_keys", "changes_keys")}
        return cls(JsonPatch.parse(str(arguments[PATCH])), **given)

    def arguments(self) -> dict[str, Any]:
        """Return the edit as JSON values, which a bulk action or a request for approval stores."""
        return {
            PATCH: self.patch.text, "operations": operations_of(self.patch), "release": self.release,
            "new_keys": self.new_keys, "changes_keys": self.changes_keys,
        }  # fmt: skip


def operations_of(patch: JsonPatch) -> list[str]:
    """Return each operation without its value, such as "replace /customer/country"."""
    return [str(operation) for operation in patch.operations]
