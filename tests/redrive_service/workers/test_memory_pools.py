"""The threads of a worker process share the memory pools (arenas) of the C library."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from redrive_service.celery import ARENAS

#: Eight threads allocate memory at the same time; then glibc lists its arenas on standard error.
THREADS = """
import ctypes, threading
from celery.signals import worker_process_init
import redrive_service.celery
worker_process_init.send(None)
meeting = threading.Barrier(8)
def work():
    meeting.wait()
    bytearray(100_000)
    meeting.wait()
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
ctypes.CDLL(None).malloc_stats()
"""


@pytest.mark.soak
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has arenas")
def test_eight_threads_of_a_worker_process_share_two_memory_pools() -> None:
    told = subprocess.run([sys.executable, "-c", THREADS], check=True, capture_output=True, text=True).stderr
    assert told.count("Arena ") == ARENAS
