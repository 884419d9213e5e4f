"""The actions on the tags of a queue: TagQueue, UntagQueue and ListQueueTags."""

from collections.abc import Mapping
from typing import Final

from redrive_service.sandbox.sqs.api.errors import invalid_parameter, missing_parameter
from redrive_service.sandbox.sqs.api.parameters import Answer, Request, required_text, text_map, texts
from redrive_service.sandbox.sqs.queues.account import Account

_MOST_TAGS: Final = 50
_LONGEST_KEY: Final = 128
_LONGEST_VALUE: Final = 256


def tag_queue(account: Account, request: Request) -> Answer:
    """Add tags to a queue. A new tag replaces a tag with the same key."""
    queue = account.queue_at(required_text(request, "QueueUrl"))
    if request.get("Tags") is None:
        raise missing_parameter("Tags")
    queue.tags = check_tags(text_map(request, "Tags"), queue.tags)
    account.record.changed = True
    return {}


def untag_queue(account: Account, request: Request) -> Answer:
    """Remove tags from a queue by their keys. An unknown key is no error."""
    queue = account.queue_at(required_text(request, "QueueUrl"))
    if request.get("TagKeys") is None:
        raise missing_parameter("TagKeys")
    for key in texts(request, "TagKeys"):
        queue.tags.pop(key, None)
    account.record.changed = True
    return {}


def list_queue_tags(account: Account, request: Request) -> Answer:
    """Return all tags of a queue. If it has none, the answer has no `Tags`."""
    queue = account.queue_at(required_text(request, "QueueUrl"))
    return {"Tags": dict(queue.tags)} if queue.tags else {}


def check_tags(added: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str]:
    """Return the tags `before` with the tags `added`. Raises SqsError if SQS would not accept the added tags."""
    for key, value in added.items():
        if not 1 <= len(key) <= _LONGEST_KEY or len(value) > _LONGEST_VALUE:
            raise invalid_parameter(
                f"Tag keys must have 1 to {_LONGEST_KEY} characters and values at most {_LONGEST_VALUE}: '{key[:40]}'.",
            )
    tags = {**before, **added}
    if len(tags) > _MOST_TAGS:
        raise invalid_parameter(f"A queue can have at most {_MOST_TAGS} tags. These would be {len(tags)}.")
    return tags
