"""A letter goes back to its source; if that is not known, the letter is parked."""

from __future__ import annotations

import base64

import pytest

from reprocessing.domain.message.arn import resource_name
from reprocessing.domain.message.envelope import Attribute
from reprocessing.models import DeadLetterQueue, Source, Target
from reprocessing.pipeline.capture import find_source, peek
from reprocessing.pipeline.parking_lot import act_on_parked
from tests.reprocessing.domain.dead import FUNCTION, LETTERS, SUBSCRIPTION, TARGET
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db

QUEUE = "arn:aws:sqs:us-west-2:123456789012:does-not-exist"
#: What each kind of letter says of what failed.
FAILED = {"lambda_destination": FUNCTION, "sns": SUBSCRIPTION, "eventbridge": TARGET, "scheduler": QUEUE}


def _bury(bench: Workbench, kind: str) -> None:
    dead = LETTERS[kind]
    bench.sqs.send_message(
        QueueUrl=bench.dlq_url,
        MessageBody=dead.body.decode(),
        MessageAttributes={name: _typed(attribute) for name, attribute in dead.attributes.items()},
    )


def _typed(attribute: Attribute) -> dict[str, str]:
    assert isinstance(attribute.value, str)
    return {"DataType": attribute.type, "StringValue": attribute.value}


def _source(bench: Workbench, arn: str, kind: str = "lambda") -> Source:
    target = Target.objects.create(kind=kind, arn=f"{arn}-t", url="", region="us-east-1")
    return Source.objects.create(dlq=bench.dlq, arn=arn, target=target)


@pytest.mark.parametrize("kind", FAILED)
def test_a_letter_goes_back_to_the_source_that_failed(kind: str) -> None:
    bench = Workbench()
    source = _source(bench, FAILED[kind])
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(default_source=bench.source)
    _bury(bench, kind)
    bench.ready()
    letter = bench.letter()
    assert (letter.state, letter.source, letter.target) == ("waiting", source, source.target)


@pytest.mark.parametrize("kind", FAILED)
def test_a_letter_of_an_unregistered_source_is_parked_and_names_it(kind: str) -> None:
    bench = Workbench()
    _bury(bench, kind)
    bench.ready()
    letter = bench.letter()
    assert (letter.state, letter.reason, letter.target) == ("parked", "unknown_source", None)
    assert letter.detail == f"it failed in {FAILED[kind]}"
    assert act_on_parked.release([letter.pk], by="anna", reason="go").refused[letter.pk].endswith(f"; {letter.detail}")
    source = _source(bench, FAILED[kind])
    assert act_on_parked.release([letter.pk], by="anna", reason="named").done == (letter.pk,)
    letter.refresh_from_db()
    assert (letter.state, letter.source, letter.target) == ("waiting", source, source.target)


@pytest.mark.parametrize(
    ("source", "kind", "goes"),
    [(FUNCTION, "lambda", True), (FUNCTION, "http", True), (SUBSCRIPTION, "http", False), ("", "", False)],
)
def test_a_lambda_letter_goes_only_to_the_target_of_a_function(source: str, kind: str, goes: bool) -> None:
    bench = Workbench()
    if source:
        bench.source.delete()
        bench.source = _source(bench, source, kind)
    _bury(bench, "lambda")
    bench.ready()
    assert bench.letter().source == (bench.source if goes else None)
    if not goes:
        assert bench.letter().detail == "it comes from a Lambda function, but does not name it"


@pytest.mark.parametrize(("kind", "goes"), [("lambda", True), ("http", True), ("sqs", False), ("celery", False)])
def test_a_notification_without_a_subscription_goes_to_no_queue(kind: str, goes: bool) -> None:
    bench = Workbench()
    bench.source.delete()
    source = _source(bench, "arn:aws:sqs:eu-west-1:0:x", kind)
    body = _without_unsubscribing()
    assert find_source.Sources(bench.dlq).of(body, {}, {}) == (source if goes else None)
    assert find_source.describe_source(body, {}, {}) == "it comes from an SNS subscription, but does not name it"


def _without_unsubscribing() -> bytes:
    lines = LETTERS["sns"].body.split(b"\n")
    return b"\n".join(line for line in lines if b"UnsubscribeURL" not in line)


def test_a_plain_letter_goes_to_the_only_source_unless_it_names_another_queue() -> None:
    bench = Workbench()
    plain, another = base64.b64encode(b"x"), {"DeadLetterQueueSourceArn": QUEUE}
    assert find_source.Sources(bench.dlq).of(plain, {}, {}) == bench.source
    assert find_source.Sources(bench.dlq).of(plain, {}, another) is None
    assert find_source.describe_source(plain, {}, another) == f"it failed in {QUEUE}"


def test_the_source_queue_wins_over_the_form_of_the_body() -> None:
    bench = Workbench()
    _source(bench, SUBSCRIPTION)
    body, system = LETTERS["sns"].body, {"DeadLetterQueueSourceArn": bench.source.arn}
    assert find_source.Sources(bench.dlq).of(body, {}, system) == bench.source
    assert find_source.describe_source(body, {}, system) == f"it failed in {bench.source.arn}"


def test_peek_shows_the_source_of_a_message() -> None:
    bench = Workbench()
    _bury(bench, "eventbridge")
    [glimpse] = peek.messages(bench.dlq, limit=1).messages
    assert glimpse.source == TARGET
    assert resource_name(glimpse.source) == "ship"
