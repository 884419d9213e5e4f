"""What Lambda answers, and what that means for a letter. Against a stand-in for Lambda, which says what it is."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.domain.replay.verdicts import NotSent, Outcome, Refused, Taken, Unknown
from reprocessing.domain.targets.async_sender import LambdaCall
from reprocessing.gateways import aws
from reprocessing.gateways.aws.clients import client
from reprocessing.gateways.aws_services.lambda_invoke import Invocations
from tests.reprocessing.gateways.stand_ins import Said, StandIn, assumed, function_error, lambda_error, standing_in

FUNCTION = "arn:aws:lambda:eu-west-1:111122223333:function:ship:live"
ROLE = "arn:aws:iam::111122223333:role/ship"
SECRET = "card 4111"


@pytest.fixture(scope="module")
def running() -> Iterator[StandIn]:
    with standing_in(lambda _: Said()) as stand_in, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL_LAMBDA", stand_in.url)
        aws.forget_clients()
        yield stand_in
    aws.forget_clients()


@pytest.fixture
def stand_in(running: StandIn) -> StandIn:
    running.asked.clear()
    running.connections = 0
    return running


def invocation(attempt: int = 1, payload: bytes = b"{}", role: str = "", timeout: float = 5.0) -> LambdaCall:
    return LambdaCall(attempt, FUNCTION, "eu-west-1", role, payload, timeout)


def invoke(*calls: LambdaCall) -> dict[int, Outcome]:
    carrier = Invocations(slack=0.0)
    carrier.start(calls or [invocation()], may_start=lambda: True)
    told: dict[int, Outcome] = {}
    while carrier.open:
        told |= dict(carrier.ended(within=10))
    carrier.close()
    return told


def said(stand_in: StandIn, answer: Said) -> Outcome:
    stand_in.answer = lambda _: answer
    return invoke()[1]


def test_a_function_gets_the_payload_byte_for_byte_and_its_answer_is_waited_for(stand_in: StandIn) -> None:
    stand_in.answer = lambda _: Said(body=b'{"errorType": "no error, since no header says so"}')
    payload = b'{"b": 1.00, "a":"\\u00e9\xc3\xa9" }'
    assert invoke(invocation(payload=payload)) == {1: Taken()}
    [asked] = stand_in.asked
    assert asked.body == payload
    assert asked.path == f"/2015-03-31/functions/{FUNCTION}/invocations"
    assert asked.headers["x-amz-invocation-type"] == "RequestResponse"


ONE_ERROR = {"errorType": "ValueError", "errorMessage": SECRET, "stackTrace": [SECRET]}


@pytest.mark.parametrize(
    ("kind", "error", "name"),
    [
        ("Unhandled", ONE_ERROR, " with ValueError"), ("Handled", ONE_ERROR, " with ValueError"),
        ("Unhandled", {"errorMessage": SECRET}, ""), ("Unhandled", {"errorType": f"{SECRET}!"}, ""),
        ("Unhandled", {"errorType": "x" * 101}, ""), ("Unhandled", [SECRET], ""),
        ("Unhandled", ONE_ERROR | {"more": "x" * 70_000}, ""),
    ],
)  # fmt: skip
def test_a_function_s_error_is_told_by_its_name_and_never_quotes_the_letter(
    stand_in: StandIn, kind: str, error: object, name: str
) -> None:
    message = f"the function failed{name}; its log has more about request request-1"
    assert said(stand_in, function_error(kind, error)) == Refused(kind, message)


@pytest.mark.parametrize(
    ("status", "code", "outcome"),
    [
        (413, "RequestTooLargeException", Refused(
            "RequestTooLarge", "It is larger than a function takes.", poison=True, reason=ParkedReason.TOO_LARGE)),
        (400, "InvalidRequestContentException", Refused(
            "InvalidRequestContent", "It is no JSON that Lambda can read.", poison=True,
            reason=ParkedReason.UNSENDABLE)),
        (415, "UnsupportedMediaTypeException", Refused(
            "UnsupportedMediaType", "Lambda takes no content of its type.", poison=True,
            reason=ParkedReason.UNSENDABLE)),
        (500, "ServiceException", Unknown("Lambda failed: ServiceException (500)")),
        (503, "SomethingException", Unknown("Lambda failed: SomethingException (503)")),
    ],
)  # fmt: skip
def test_what_lambda_says_of_a_letter_decides_about_it(
    stand_in: StandIn, status: int, code: str, outcome: Outcome
) -> None:
    assert said(stand_in, lambda_error(status, code, SECRET)) == outcome


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (404, "ResourceNotFoundException"),
        (403, "AccessDeniedException"),
        (403, "ExpiredTokenException"),
        (409, "ResourceConflictException"),
        (502, "ResourceNotReadyException"),
        (502, "KMSDisabledException"),
        (502, "ENILimitReachedException"),
        (400, "RecursiveInvocationException"),
    ],
)
def test_a_function_that_cannot_begin_is_out_of_reach_and_no_letter_is_to_blame(
    stand_in: StandIn, status: int, code: str
) -> None:
    before = client("eu-west-1")
    outcome = said(stand_in, lambda_error(status, code, "why"))
    assert outcome == NotSent(f"nothing was sent: {code} (why)", unreachable=True)
    assert (client("eu-west-1") is before) == (code != "ExpiredTokenException")  # which is read again


@pytest.mark.parametrize(
    ("header", "seconds"), [("7", 7), ("0", 1), ("86400", 5), ("soon", 5), ("999", 900), (None, 5)]
)
def test_a_throttle_says_how_long_to_wait_within_reason(stand_in: StandIn, header: str | None, seconds: int) -> None:
    answer = lambda_error(429, "TooManyRequestsException", SECRET, **({"Retry-After": header} if header else {}))
    after = timedelta(seconds=seconds)
    assert said(stand_in, answer) == NotSent("nothing was sent: the function is throttled", after=after)
    reasoned = Said(429, b'{"Reason":"ReservedFunctionConcurrentInvocationLimitExceeded"}', answer.headers)
    why = "nothing was sent: the function is throttled (ReservedFunctionConcurrentInvocationLimitExceeded)"
    assert said(stand_in, reasoned) == NotSent(why, after=after)


def test_a_connection_serves_one_invocation_after_another(stand_in: StandIn) -> None:
    stand_in.answer = lambda _: Said(body=b"x" * 200_000)
    carrier = Invocations(limit=1)
    carrier.start([invocation(one) for one in range(20)], may_start=lambda: True)
    told: list[tuple[int, Outcome]] = []
    while carrier.open:
        told += carrier.ended(within=10)
    assert told == [(one, Taken()) for one in range(20)]
    assert stand_in.connections <= 1
    carrier.close()


def test_a_function_is_invoked_under_its_role(stand_in: StandIn, afresh: pytest.MonkeyPatch) -> None:
    stand_in.answer = lambda _: Said()
    until = datetime.now(UTC) + timedelta(hours=1)  # noqa: TID251  credentials end by the real clock
    with standing_in(lambda _: assumed("SHIPPING", until)) as sts:
        afresh.setenv("AWS_ENDPOINT_URL_STS", sts.url)
        aws.forget_clients()
        assert invoke(invocation(1, role=ROLE), invocation(2)) == {1: Taken(), 2: Taken()}
    signed = sorted("Credential=SHIPPING/" in asked.headers["authorization"] for asked in stand_in.asked)
    assert (signed, len(sts.asked)) == ([False, True], 1)
