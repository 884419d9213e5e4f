"""Clients are kept, shared by threads, and never shared over a fork or kept with credentials that ran out."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from reprocessing.domain.errors import QueueUnreachable
from reprocessing.domain.replay.verdicts import NotSent
from reprocessing.gateways import aws, sqs
from reprocessing.gateways.aws.clients import client, cloudwatch, configured_region
from reprocessing.gateways.aws.configuration import AwsConfigurationIsUnclear
from reprocessing.gateways.aws.errors import outcome_of
from reprocessing.gateways.sqs import QueueAddress
from tests.contract.endpoints import Sandbox
from tests.reprocessing.gateways.letters import letter, send

FORK = """
import os, sys, threading
from reprocessing.gateways import sqs
from reprocessing.gateways.aws import clients

address = sqs.QueueAddress.of(sys.argv[1])
before = clients.client(address.region)
assert clients.client(address.region) is before
sqs.depth(address)
clients._clients._lock.acquire()  # as by a thread that makes a client at this moment
child = os.fork()
if child == 0:
    after = clients.client(address.region)
    sqs.depth(address)
    os._exit(0 if after is not before else 3)
clients._clients._lock.release()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_all_threads_get_one_client_also_at_the_first_call(afresh: pytest.MonkeyPatch) -> None:
    aws.forget_clients()
    together = Barrier(8)

    def get(_: int) -> int:
        together.wait(5)
        return id(client("eu-west-1"))

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(get, range(8))) == {id(client("eu-west-1"))}


def test_regions_and_waits_have_clients_of_their_own() -> None:
    assert len({id(client("eu-west-1")), id(client("eu-west-2")), id(client("eu-west-1", wait=20))}) == 3


@pytest.mark.soak
def test_a_forked_child_makes_its_own_clients_whatever_its_parent_was_doing(address: QueueAddress) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORK, address.url], env=dict(os.environ), timeout=30, check=False, capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("code", ["ExpiredToken", "InvalidClientTokenId"])
def test_credentials_that_ran_out_are_read_again(
    address: QueueAddress, sandbox: Sandbox, code: str, afresh: pytest.MonkeyPatch
) -> None:
    before = client(address.region)
    sandbox.plan({"kind": "error", "status": 403, "code": code, "times": 1})
    send(address, letter(1))
    after = client(address.region)
    assert after is not before
    sandbox.plan({"kind": "error", "status": 403, "code": code, "times": 1})
    sqs.delete(address, {"m": "h"})
    assert client(address.region) is not after


ENDPOINT = "No client of AWS can be made: the endpoint that this process was given for "


@pytest.mark.parametrize(
    ("variable", "value", "told", "cure"),
    [
        ("AWS_PROFILE", "nobody", "The config profile (nobody) could not be found", "Correct or unset AWS_PROFILE"),
        ("AWS_CONFIG_FILE", __file__, "Unable to parse config file", "Correct that file"),
        ("AWS_ENDPOINT_URL_SQS", "127.0.0.1:39324", f"{ENDPOINT}sqs", "Correct or unset AWS_ENDPOINT_URL_SQS and "),
        ("AWS_ENDPOINT_URL_SQS", "nonsense", f"{ENDPOINT}sqs", "Correct or unset AWS_ENDPOINT_URL_SQS and "),
        ("AWS_DEFAULTS_MODE", "ever", "No client of AWS can be made: ", "begin with AWS_"),
    ],
)
def test_a_configuration_of_which_no_client_can_be_made_is_told_with_its_cure(
    afresh: pytest.MonkeyPatch, variable: str, value: str, told: str, cure: str
) -> None:
    afresh.setenv(variable, value)
    aws.forget_clients()
    with pytest.raises(AwsConfigurationIsUnclear) as raised:
        client("eu-west-1")
    assert (told in str(raised.value), cure in str(raised.value)) == (True, True)
    outcome = outcome_of(raised.value)
    assert (type(outcome), told in str(outcome), cure in str(outcome)) == (NotSent, True, False)
    with pytest.raises(QueueUnreachable) as asked:
        sqs.depth(QueueAddress("http://127.0.0.1:9/000000000000/q", "eu-west-1"))
    assert str(asked.value) == f"http://127.0.0.1:9/000000000000/q: GetQueueAttributes failed: {raised.value}"


@pytest.mark.parametrize(
    ("variable", "value", "ask", "told"),
    [
        ("AWS_ENDPOINT_URL_CLOUDWATCH", "user:hunter2@nonsense", lambda: cloudwatch("eu-west-1"),
         "Correct or unset AWS_ENDPOINT_URL_CLOUDWATCH"),
        ("AWS_PROFILE", "nobody", configured_region, r"\(nobody\) could not be found\. Correct or unset AWS_PROFILE"),
    ],
)  # fmt: skip
def test_the_setting_that_is_wrong_is_named_and_its_password_is_not(
    afresh: pytest.MonkeyPatch, variable: str, value: str, ask: Callable[[], object], told: str
) -> None:
    afresh.setenv(variable, value)
    aws.forget_clients()
    with pytest.raises(AwsConfigurationIsUnclear, match=told) as raised:
        ask()
    assert "hunter2" not in str(raised.value)
