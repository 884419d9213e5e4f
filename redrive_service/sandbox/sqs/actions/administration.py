"""Actions on queues: create, find, list, change, purge and delete."""

import re
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from typing import Final

from redrive_service.sandbox.sqs.actions.tags import check_tags
from redrive_service.sandbox.sqs.api.errors import SqsError, invalid_parameter, invalid_value, no_such_queue
from redrive_service.sandbox.sqs.api.parameters import (
    Answer,
    Request,
    required_text,
    text,
    text_map,
    texts,
    whole_between,
)
from redrive_service.sandbox.sqs.api.redrive_policies import read_redrive_policy
from redrive_service.sandbox.sqs.queues.account import Account
from redrive_service.sandbox.sqs.queues.attributes import COMPUTED, KNOWN, Settings, normalise, unknown_attribute
from redrive_service.sandbox.sqs.queues.directory import ACCOUNT_ID
from redrive_service.sandbox.sqs.queues.fifo import FifoQueue
from redrive_service.sandbox.sqs.queues.message import DELAYED, IN_FLIGHT, READY
from redrive_service.sandbox.sqs.queues.queue import Queue

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,80}", re.ASCII)
_LONGEST_NAME: Final = 80
_FIFO_SUFFIX: Final = ".fifo"
_LARGEST_PAGE: Final = 1000  # max queues in an answer (AWS, ListQueues, MaxResults)
_PURGE_INTERVAL: Final = 60.0  # min seconds between two purges of a queue (AWS, PurgeQueue)


def create_queue(account: Account, request: Request) -> Answer:
    """Create a queue, and return its URL. If the queue exists already with the same attributes, only return its URL."""
    name = required_text(request, "QueueName")
    account.record.queue = name
    raw = text_map(request, "Attributes")
    fifo = raw.get("FifoQueue", "").lower() == "true"
    _check_name(name, fifo=fifo)
    changes = normalise(_checked_fifo(raw), fifo=fifo, before={})
    tags = check_tags(text_map(request, "tags"), {})
    queue = account.queues.get(name)
    if queue is not None:
        _check_same(queue, changes)
        return {"QueueUrl": account.url_of(queue)}
    _check_redrive(account, account.arn_of(name), changes, fifo=fifo)
    settings = Settings(fifo=fifo)
    settings.apply(changes)
    queue = account.open_queue(name, settings)
    queue.tags = tags
    account.record.changed = True
    return {"QueueUrl": account.url_of(queue)}


def delete_queue(account: Account, request: Request) -> Answer:
    """Delete the queue with all its messages, without delay."""
    account.close_queue(account.queue_at(required_text(request, "QueueUrl")))
    account.record.changed = True
    return {}


def get_queue_url(account: Account, request: Request) -> Answer:
    """Return the URL of the queue with this name."""
    name = required_text(request, "QueueName")
    account.record.queue = name
    queue = account.queues.get(name)
    if queue is None or (text(request, "QueueOwnerAWSAccountId") or ACCOUNT_ID) != ACCOUNT_ID:
        raise no_such_queue()
    return {"QueueUrl": account.url_of(queue)}


def list_queues(account: Account, request: Request) -> Answer:
    """Return the URLs of the queues whose names begin with the prefix, sorted by name, in pages."""
    prefix = text(request, "QueueNamePrefix") or ""
    names = sorted(name for name in account.queues if name.startswith(prefix))
    return _page(account, request, names, "QueueUrls")


def list_dead_letter_source_queues(account: Account, request: Request) -> Answer:
    """Return the URLs of the queues whose dead-letter queue is this queue, sorted by name, in pages."""
    target = account.queue_at(required_text(request, "QueueUrl"))
    policies = ((name, queue.settings.redrive) for name, queue in account.queues.items())
    names = sorted(name for name, policy in policies if policy and policy.target_arn == target.arn)
    return {"queueUrls": [], **_page(account, request, names, "queueUrls")}


def get_queue_attributes(account: Account, request: Request) -> Answer:
    """Return the requested attributes of a queue. Counts of messages are exact, which AWS does not promise."""
    queue = account.queue_at(required_text(request, "QueueUrl"))
    names = texts(request, "AttributeNames")
    for name in names:
        if name not in KNOWN:
            raise unknown_attribute(name)
    if not names:
        return {}
    shown = {**_computed(queue), **queue.settings.shown}
    if "All" not in names:
        shown = {name: shown[name] for name in names if name in shown}
    return {"Attributes": shown} if shown else {}


def set_queue_attributes(account: Account, request: Request) -> Answer:
    """Change all given attributes of a queue or, if one is invalid, none. Unlike on AWS, changes apply at once."""
    queue = account.queue_at(required_text(request, "QueueUrl"))
    settings = queue.settings
    changes = normalise(text_map(request, "Attributes"), fifo=queue.fifo, before=settings.shown)
    _check_redrive(account, queue.arn, changes, fifo=queue.fifo)
    delay, retention = settings.delay, settings.retention
    settings.apply(changes)
    queue.modified_at = account.now
    if settings.retention != retention:
        queue.retention.rearm()
    if isinstance(queue, FifoQueue) and settings.delay != delay:
        queue.delay_anew(account.now)
    account.record.changed = True
    return {}


def purge_queue(account: Account, request: Request) -> Answer:
    """Delete all messages of a queue, without delay. Raises SqsError if it was purged less than 60 seconds ago."""
    queue = account.queue_at(required_text(request, "QueueUrl"))
    if queue.purged_at is not None and account.now < queue.purged_at + _PURGE_INTERVAL:
        sentence = f"Only one PurgeQueue operation on {queue.name} is allowed every 60 seconds."
        raise SqsError("PurgeQueueInProgress", sentence)
    queue.purge()
    queue.purged_at = account.now
    account.record.changed = True
    return {}


def _check_name(name: str, *, fifo: bool) -> None:
    """Check that a name has 1 to 80 letters, digits, - and _. The name of a FIFO queue must end in .fifo."""
    stem = name.removesuffix(_FIFO_SUFFIX)
    if fifo and stem == name:
        raise invalid_parameter("The name of a FIFO queue can only include alphanumeric characters, hyphens, or "
                                "underscores, must end with .fifo suffix and be 1 to 80 in length.")  # fmt: skip
    if len(name) > _LONGEST_NAME or not _NAME.fullmatch(stem) or (stem != name and not fifo):
        raise invalid_parameter("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")


def _checked_fifo(raw: Mapping[str, str]) -> Mapping[str, str]:
    """Return the attributes unchanged. Refuse FifoQueue=false, even for a standard queue, as AWS does."""
    if "FifoQueue" in raw and raw["FifoQueue"].lower() != "true":
        raise unknown_attribute("FifoQueue")
    return raw


def _check_same(queue: Queue, changes: Mapping[str, str]) -> None:
    for name, value in changes.items():
        if queue.settings.shown.get(name, "") != value:
            sentence = f"A queue already exists with the same name and a different value for attribute {name}"
            raise SqsError("QueueNameExists", sentence)


def _check_redrive(account: Account, source_arn: str, changes: Mapping[str, str], *, fifo: bool) -> None:
    """Check that the dead-letter queue of a redrive policy exists, has the same type, and allows this source queue."""
    stored = changes.get("RedrivePolicy")
    if not stored:
        return
    target_arn = read_redrive_policy(stored).target_arn
    target = account.queue_by_arn(target_arn)
    if target is None and target_arn != source_arn:
        raise invalid_value(stored, "RedrivePolicy", "Dead letter target does not exist.")
    if target_arn.endswith(".fifo") != fifo:
        raise invalid_value(stored, "RedrivePolicy", "Dead-letter queue must be same type of queue as the source.")
    if target is not None and not target.settings.allow.allows(source_arn):
        reason = "The dead-letter queue's RedriveAllowPolicy does not allow this source queue."
        raise invalid_value(stored, "RedrivePolicy", reason)


def _computed(queue: Queue) -> dict[str, str]:
    counts = queue.counts
    shown = {
        "ApproximateNumberOfMessages": str(counts[READY]),
        "ApproximateNumberOfMessagesDelayed": str(counts[DELAYED]),
        "ApproximateNumberOfMessagesNotVisible": str(counts[IN_FLIGHT]),
        "CreatedTimestamp": str(int(queue.created_at)),
        "LastModifiedTimestamp": str(int(queue.modified_at)),
        "QueueArn": queue.arn,
    }
    assert shown.keys() == COMPUTED  # noqa: S101 - a new computed attribute must be shown too
    return shown


def _page(account: Account, request: Request, names: Sequence[str], key: str) -> Answer:
    """Return an answer with one page of the URLs of these queues. `key` is the name of the list in the answer.

    The answer has a NextToken only if MaxResults was given and another page follows.
    """
    most = whole_between(request, "MaxResults", 1, _LARGEST_PAGE)
    token = text(request, "NextToken")
    after = _read_token(token) if token else ""
    rest = [name for name in names if name > after]
    page = rest[: most or _LARGEST_PAGE]
    answer: Answer = {}
    if page:
        answer[key] = [account.url_of(account.queues[name]) for name in page]
    if most and len(rest) > len(page):
        answer["NextToken"] = urlsafe_b64encode(page[-1].encode()).decode()
    return answer


def _read_token(token: str) -> str:
    try:
        return b64decode(token, altchars=b"-_", validate=True).decode()
    except ValueError:
        raise invalid_parameter("Invalid or expired next token.") from None
