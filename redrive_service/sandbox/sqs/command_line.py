"""The command line of the local SQS: it starts the server with the machine's clock, random numbers and sockets."""

import argparse
import asyncio
import contextlib
import gc
import signal
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random, SystemRandom
from typing import Final

from redrive_service.sandbox.sqs.call_log.call_file import CallLogIsUnusable
from redrive_service.sandbox.sqs.call_log.calls import CallLog
from redrive_service.sandbox.sqs.core import DEFAULT_REGION, LocalSqs
from redrive_service.sandbox.sqs.server.clock import Clock
from redrive_service.sandbox.sqs.server.routes import connect
from redrive_service.sandbox.sqs.server.server import SqsServer
from redrive_service.sandbox.sqs.storage.journal import Journal, JournalIsUnusable

_BACKLOG: Final = 1024
_SEED_BITS: Final = 128
# Messages are kept long and form no cycles. Frequent garbage collection would make queues with many messages slow.
_GC_THRESHOLDS: Final = (200_000, 50, 1_000)


class _CannotStart(Exception):
    pass


def main(arguments: Sequence[str]) -> int:
    """Run the server until SIGTERM or SIGINT. Return the exit code of the process."""
    options = _parser().parse_args(arguments)
    try:
        with contextlib.ExitStack() as stack:
            server = _make_server(options, stack)
            gc.freeze()
            gc.set_threshold(*_GC_THRESHOLDS)
            return asyncio.run(_run(server, options.host, options.port))
    except (_CannotStart, JournalIsUnusable) as trouble:
        print(trouble, file=sys.stderr)  # noqa: T201 - a command says what is wrong
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m redrive_service.sandbox.sqs", description="A local Amazon SQS.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on (default: any free port)")
    parser.add_argument("--region", default=DEFAULT_REGION, help="region in queue ARNs (default: %(default)s)")
    parser.add_argument("--data", type=Path, help="folder that keeps the state (default: memory only)")
    parser.add_argument("--call-log", type=Path, help="file that gets every call as a JSON line")
    return parser


def _make_server(options: argparse.Namespace, stack: contextlib.ExitStack) -> SqsServer:
    def fresh() -> LocalSqs:
        return LocalSqs(Random(SystemRandom().getrandbits(_SEED_BITS)), region=options.region)  # noqa: S311 - ids

    clock = Clock(time.time)  # noqa: TID251 - the clock is read here and injected
    try:
        calls = CallLog(file=options.call_log and options.call_log.open("a+b", buffering=0))
        stack.callback(calls.close)
        if options.data is None:
            return SqsServer(fresh(), clock, calls)
        journal = Journal(options.data)
    except OSError as error:
        raise _CannotStart(f"{error.filename} cannot be used: {error.strerror}.") from error
    stack.callback(journal.close)
    core = journal.recover(fresh)
    clock.go_on_from(core.now)
    return SqsServer(core, clock, calls, journal)


async def _run(server: SqsServer, host: str, port: int) -> int:
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[int] = loop.create_future()

    def stop(code: int) -> None:
        if not stopped.done():
            stopped.set_result(code)

    def trouble(_: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        """Stop the server after a failed write, because only stored calls may be answered."""
        error = context.get("exception")
        if isinstance(error, JournalIsUnusable | CallLogIsUnusable):
            print(error, file=sys.stderr)  # noqa: T201 - a command says what is wrong
            stop(1)
        else:
            loop.default_exception_handler(context)

    loop.set_exception_handler(trouble)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, partial(stop, 0))
    try:
        listener = await loop.create_server(partial(connect, server), host, port, backlog=_BACKLOG)
    except OSError as error:
        raise _CannotStart(f"Cannot listen on {host}:{port}: {error.strerror}.") from error
    bound = listener.sockets[0].getsockname()[1]
    print(f"ready http://{host}:{bound}", flush=True)  # noqa: T201 - the parent process waits for this line
    code = await stopped
    listener.close()
    return code
