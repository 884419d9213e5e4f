"""Preview an edit of many messages: to how many messages its patch can be applied, and examples of the changes."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest
from django.urls import reverse

from reprocessing import conf
from reprocessing.admin.messages import comparison
from reprocessing.admin.messages.readable_bytes import visible
from reprocessing.domain.message.envelope import unpack_attributes
from reprocessing.domain.parking_lot.bulk_edit import BulkEdit, operations_of
from reprocessing.domain.parking_lot.json_patch import JsonPatch
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.models import DeadLetterQueue, Letter
from reprocessing.pipeline.parking_lot import preview_edit
from reprocessing.pipeline.parking_lot.edit_messages import Patched
from reprocessing.pipeline.parking_lot.preview_edit import EditPreview
from reprocessing.store.parking_lot import filtered_letters
from reprocessing.store.payloads import viewed_content

#: Max messages that a page checks, and the seconds after which it stops.
CHECKED: Final = 2_000
SECONDS: Final = 1.5
#: Max messages for which a page shows what the edit changes.
EXAMPLES: Final = 3


def check(criteria: MessageFilter, wanted: BulkEdit) -> EditPreview:
    """Try an edit on the newest messages that match a filter, without saving. Return its effect, with examples.

    Raises:
        PayloadUnreadable: a key of encrypted payloads is not available now.
        InvalidFilter: the search took too long.
    """
    letters = filtered_letters.newest_ids(criteria, limit=CHECKED)
    return preview_edit.preview(letters, wanted, conf.current().marks, seconds=SECONDS, samples=EXAMPLES)


def context(request: HttpRequest, found: EditPreview, patch: JsonPatch, count: int, why: str) -> dict[str, Any]:
    """Return the result of `check` as template values. The audit log records, with the reason `why`, who saw examples.

    `count`: how many messages match the filter.
    """
    ids = [letter for *_, letter in found.unfit]
    examples = dict(Letter.objects.filter(pk__in=ids).values_list("pk", "message_id"))
    return {
        "operations": operations_of(patch),
        "found": found,
        "is_part": found.checked < count,
        "n_unfit": found.checked - found.fits,
        "unfit": [(why, n, visible(examples.get(letter, ""))) for why, n, letter in found.unfit],
        "examples": [_example(example, request.user.get_username(), why) for example in found.samples],
    }


def _example(example: Patched, by: str, why: str) -> dict[str, Any]:
    viewed_content.record_view(example.stand.letter_id, by=by, why=why)
    dlq = DeadLetterQueue.objects.get(pk=example.stand.dlq_id)
    own = unpack_attributes(bytes(example.stand.attributes))
    before, after = (viewed_content.masked(dlq, body, own) for body in (bytes(example.stand.body), example.to.body))
    body, _ = comparison.differences((before.body, {}), (after.body, {}))
    return {
        "address": reverse("admin:reprocessing_letter_change", args=[example.stand.letter_id]),
        "message_id": visible(example.stand.message_id), "part": body, "was": example.stand.size,
        "size": example.to.size, "is_masked": after.is_masked,
    }  # fmt: skip
