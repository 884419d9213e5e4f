"""Send one text to one destination, of any kind, within a time limit. A failure is returned, not raised."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, assert_never

from reprocessing.domain.errors import RedriveError
from reprocessing.domain.notifications.delivery import Delivery, Failed, Sent
from reprocessing.domain.notifications.destination import AppriseService, Destination, SignedWebhook, SnsTopic
from reprocessing.domain.notifications.text import Text, TextSection
from reprocessing.domain.notifications.webhook_body import webhook_body
from reprocessing.domain.replay.verdicts import NotSent, Outcome, Refused, Taken, Unknown
from reprocessing.domain.sources.sns_notification import Publication
from reprocessing.domain.targets import webhook_signature
from reprocessing.domain.targets.async_sender import HttpCall
from reprocessing.domain.targets.http_responses import StatusMeanings
from reprocessing.gateways.aws_services import sns_eventbridge_publish
from reprocessing.gateways.http.post import Posts
from reprocessing.gateways.notifiers import apprise_process

logger = logging.getLogger(__name__)

#: Seconds to wait after the timeout of an HTTP request, because libcurl then reports how the request ended.
_AFTER: Final = 1.0
#: Most characters of SNS's subject, which is ASCII: https://docs.aws.amazon.com/sns/latest/api/API_Publish.html
_LONGEST_SUBJECT: Final = 99


@dataclass(frozen=True, slots=True)
class Letterhead:
    """The values that are sent together with a text.

    `place`: the name of this installation. `name`: the name of the destination. `message_id`: stays the same if the
    same text is sent again, so that receivers can recognise the repetition.
    """

    place: str
    name: str
    message_id: str
    now: datetime


def send(
    destination: Destination, text: Text, sections: Sequence[TextSection], head: Letterhead, *, seconds: float
) -> Delivery:
    """Send a text; return `Sent`, or `Failed` with a reason that contains neither the destination's URL nor its answer.

    `seconds`: how long the destination may take.
    """
    try:
        match destination:
            case AppriseService():
                return apprise_process.send(destination, text, seconds=seconds)
            case SnsTopic():
                return _publish(destination, text, within=seconds)
            case SignedWebhook():
                return _post(destination, text, sections, head, seconds)
            case _ as never:
                assert_never(never)
    except RedriveError:
        return Failed("the AWS configuration of this process cannot be used")
    except Exception as error:  # noqa: BLE001  a library's fault must not end the sending to others
        logger.error("Sending to %s failed: %s.", head.name, type(error).__name__)  # noqa: TRY400  its message may hold secrets
        return Failed(f"sending failed: {type(error).__name__}")


def _publish(topic: SnsTopic, text: Text, *, within: float) -> Delivery:
    until = time.monotonic() + within
    subject = text.title.encode("ascii", "replace").decode()[:_LONGEST_SUBJECT]
    publication = Publication(attempt=0, message=text.body.encode(), subject=subject)
    outcomes = sns_eventbridge_publish.publish(topic.arn, [publication], may_start=lambda: time.monotonic() < until)
    match outcomes[0]:
        case Taken():
            return Sent()
        case Refused(code=code):
            return Failed(f"SNS refused it: {code}")
        case NotSent(unreachable=True):
            return Failed("SNS could not be reached")
        case NotSent() | Unknown():
            return Failed("SNS did not answer")
        case _ as never:
            assert_never(never)


def _post(
    webhook: SignedWebhook, text: Text, sections: Sequence[TextSection], head: Letterhead, seconds: float
) -> Delivery:
    body = webhook_body(text, sections, place=head.place, destination=head.name)
    signed = webhook_signature.headers(webhook.key, message_id=head.message_id, now=head.now, body=body)
    headers = (("Content-Type", "application/json"), *signed)
    return _told(_asked(webhook, HttpCall(0, webhook.url, body, headers, seconds, StatusMeanings())))


def _asked(webhook: SignedWebhook, post: HttpCall) -> Outcome | None:
    posts = Posts(webhook.allowed)
    until = time.monotonic() + post.timeout + _AFTER
    try:
        posts.start([post], may_start=lambda: True)
        while posts.open and (left := until - time.monotonic()) > 0:
            for _, outcome in posts.ended(within=left):
                return outcome
    finally:
        posts.close()
    return None


def _told(outcome: Outcome | None) -> Delivery:
    match outcome:
        case None:
            return Failed("it did not answer in time")
        case Taken():
            return Sent()
        case Refused(message=why):
            return Failed(why)
        case NotSent(unreachable=True):
            return Failed("it could not be reached: no connection, no address, or an invalid certificate")
        case NotSent(why=why) | Unknown(why=why):
            return Failed(why if why.startswith("it answered") else "it did not answer, or broke the connection")
        case _ as never:
            assert_never(never)
