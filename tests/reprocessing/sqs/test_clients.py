"""Clients are kept, shared by threads, and never shared over a fork or kept with credentials that ran out."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from reprocessing import sqs
from reprocessing.sqs import QueueAddress
from reprocessing.sqs.clients import client
from tests.contract.endpoints import Sandbox
from tests.reprocessing.sqs.letters import letter, send

FORK = """
import os, sys, threading
from reprocessing import sqs
from reprocessing.sqs import clients

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
    sqs.forget()
    together = Barrier(8)

    def get(_: int) -> int:
        together.wait(5)
        return id(client("eu-west-1"))

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(get, range(8))) == {id(client("eu-west-1"))}


def test_regions_and_waits_have_clients_of_their_own() -> None:
    assert len({id(client("eu-west-1")), id(client("eu-west-2")), id(client("eu-west-1", wait=20))}) == 3


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
