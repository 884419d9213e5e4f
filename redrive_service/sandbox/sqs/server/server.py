"""Execute each call on the core (`LocalSqs`), with faults, call log, long polling and journal."""

import asyncio
import random
import sys
import traceback

import orjson

from redrive_service.sandbox.sqs.actions.receiving import HIDDEN_FOR
from redrive_service.sandbox.sqs.api.batch_entries import failure, read_entries
from redrive_service.sandbox.sqs.api.call_record import Record
from redrive_service.sandbox.sqs.api.errors import SqsError
from redrive_service.sandbox.sqs.api.parameters import Answer, read_parameters
from redrive_service.sandbox.sqs.call_log.calls import Call, CallLog
from redrive_service.sandbox.sqs.call_log.failed_entries import note_failed, note_undone
from redrive_service.sandbox.sqs.core import LocalSqs
from redrive_service.sandbox.sqs.server.clock import Clock
from redrive_service.sandbox.sqs.server.connection import Connection
from redrive_service.sandbox.sqs.server.exchange import (
    Exchange,
    error_body,
    error_headers,
    queue_named_in,
    read_exchange,
)
from redrive_service.sandbox.sqs.server.fault_plan import RECEIVE, Fault, FaultPlan
from redrive_service.sandbox.sqs.server.http_head import HttpRequest
from redrive_service.sandbox.sqs.server.long_polling import LongPolling
from redrive_service.sandbox.sqs.storage.journal import Journal


class SqsServer:
    """Serves one `LocalSqs` to all connections, in one event loop."""

    def __init__(self, core: LocalSqs, clock: Clock, calls: CallLog, journal: Journal | None = None) -> None:
        self.core = core
        self.clock = clock
        self.calls = calls
        self.faults = FaultPlan()
        self._journal = journal
        self.polling = LongPolling(self)
        self._hanging: list[Exchange] = []
        self._dice = random.Random(0)  # noqa: S311  # delays repeat from run to run

    def open(self, connection: Connection, request: HttpRequest) -> None:
        """Execute one call of the AWS API. It is answered now, later (long polling), or never (if a fault says so)."""
        exchange = read_exchange(connection, request)
        try:
            exchange.asked = exchange.parameters = read_parameters(exchange.body)
            exchange.queue = queue_named_in(exchange.parameters)
            fault = self.faults.on_arrival(exchange.action, exchange.queue) if self.faults else None
            wanted = fault is None or self._apply_fault(exchange, fault)
        except SqsError as error:
            self._refuse(exchange, error, Record())
        else:
            if wanted:
                self._perform_or_wait(exchange)

    # -- for the control routes

    def plan_faults(self, plan: object) -> None:
        """Replace the fault plan. An empty plan also ends the calls that faults left without an answer.

        A call whose kind of fault is "accept_then_timeout" was executed, so its connection is closed. Other calls are
        executed now.
        """
        self.faults.replace(plan)
        if self.faults:
            return
        hanging, self._hanging = self._hanging, []
        for exchange in hanging:
            if exchange.silent or exchange.connection.peer_has_left():
                exchange.connection.drop()
            else:
                exchange.fault = None
                self._perform_or_wait(exchange)

    def advance_clock(self, seconds: float) -> float:
        """Move the clock forward, execute the timed events up to the new time, and return the new time."""
        now = self.clock.advance(seconds)
        self.core.advance(now)
        if self._journal is not None:
            self._journal.keep(now, "", b"")
        return now

    def reset(self) -> None:
        """Delete queues, calls and faults. Waiting receives get the error that their queue does not exist."""
        self.plan_faults([])
        self.calls.clear()
        self.clock.forget()
        self.core = self.core.blank()
        if self._journal is not None:
            self._journal.start_over(self.core)
        self.polling.ask_again()

    # -- one call

    def _perform_or_wait(self, exchange: Exchange) -> None:
        if not self.perform(exchange):
            self.polling.wait(exchange, self.core.now + self.core.record.wait)

    def _perform_late(self, exchange: Exchange) -> None:
        # routes.py calls `settle` when a call arrives. This call is executed later, and may wake waiting receives.
        self._perform_or_wait(exchange)
        self.polling.settle()

    def _apply_fault(self, exchange: Exchange, fault: Fault) -> bool:
        """Apply a fault to a call that has just arrived. Return whether the call must still be executed.

        Raises:
            SqsError: the error with which the fault lets the call fail.
        """
        exchange.fault = fault.kind
        if fault.kind == "error":
            raise SqsError.from_code(fault.code, fault.message, fault.status)
        if fault.kind == "partial":
            return self._fail_entries(exchange, fault)
        if fault.kind == "delay":
            late = max(0.0, fault.milliseconds + self._dice.uniform(-fault.jitter, fault.jitter)) / 1000
            asyncio.get_running_loop().call_later(late, self._perform_late, exchange)
            return False
        if fault.kind == "accept_then_timeout":
            exchange.silent = True
            return True
        record = Record(queue=exchange.queue)
        note_undone(record, exchange.action, exchange.asked, None)
        self._log(exchange, None, None, record)
        if fault.kind == "drop":
            exchange.connection.drop()
        else:
            self._hang(exchange)
        return False

    def _fail_entries(self, exchange: Exchange, fault: Fault) -> bool:
        """Remove the entries of a batch call that a fault ("partial") lets fail. Return whether others are left."""
        entries = read_entries(exchange.parameters, exchange.action.removesuffix("MessageBatch"))
        error = SqsError.from_code(fault.code, fault.message, fault.status)
        struck = {position for position in fault.positions if position < len(entries)}
        exchange.refused = [failure(entries[position]["Id"], error) for position in sorted(struck)]
        exchange.rewrite({"Entries": [entry for position, entry in enumerate(entries) if position not in struck]})
        if len(struck) < len(entries):
            return True
        self._reply(exchange, {}, Record(queue=exchange.queue))
        return False

    def perform(self, exchange: Exchange) -> bool:
        """Execute a call and answer it. Return False if it is a receive that found no message and may wait."""
        now = self.clock.now()
        if self.faults and exchange.action == RECEIVE and self._apply_receive_fault(exchange, now):
            return True
        try:
            answer = self.core.handle(exchange.action, exchange.parameters, now=now, address=exchange.address)
        except SqsError as refusal:
            self._write_to_journal(exchange, now)
            self._refuse(exchange, refusal, self.core.record)
            return True
        except Exception:  # noqa: BLE001 - a bug here is an InternalError for the client, never a closed connection
            traceback.print_exc(file=sys.stderr)
            sentence = "The local SQS has a bug; its standard error says which."
            self._refuse(exchange, SqsError("InternalError", sentence, 500), self.core.record)
            return True
        record = self.core.record
        self._write_to_journal(exchange, now)
        if record.wait and not answer:
            if record.dead_lettered:
                self._log(exchange, None, None, record)
            return False
        self._reply(exchange, answer, record)
        return True

    def _apply_receive_fault(self, exchange: Exchange, now: float) -> bool:
        """Apply a fault to a receive that has messages to return. Return true if it was answered without messages."""
        if not self.core.could_hand_out(exchange.queue or "", now=now):
            return False
        fault = self.faults.on_hand_out(exchange.queue)
        if fault is None:
            return False
        exchange.fault = fault.kind
        if fault.kind == "false_empty":
            self.answer_empty(exchange)
            return True
        exchange.rewrite({HIDDEN_FOR: fault.seconds})
        return False

    # -- answers

    def answer_empty(self, exchange: Exchange) -> None:
        """Answer a receive without messages."""
        self._reply(exchange, {}, Record(queue=exchange.queue))

    def _reply(self, exchange: Exchange, answer: Answer, record: Record) -> None:
        if exchange.refused:
            failed = answer.get("Failed")
            answer["Failed"] = [*exchange.refused, *(failed if isinstance(failed, list) else [])]
        failed = answer.get("Failed")
        if isinstance(failed, list):
            note_failed(record, exchange.action, exchange.asked, failed)
        request_id = self._log(exchange, 200, None, record)
        if exchange.silent:
            self._hang(exchange)
        else:
            exchange.connection.answer(200, orjson.dumps(answer), request_id)

    def _refuse(self, exchange: Exchange, error: SqsError, record: Record) -> None:
        note_undone(record, exchange.action, exchange.asked, error.code)
        request_id = self._log(exchange, error.status, error.code, record)
        if exchange.silent:
            self._hang(exchange)
        else:
            exchange.connection.answer(error.status, error_body(error), error_headers(error) + request_id)

    def _hang(self, exchange: Exchange) -> None:
        self._hanging = [hanging for hanging in self._hanging if not hanging.connection.gone]
        self._hanging.append(exchange)

    def _write_to_journal(self, exchange: Exchange, now: float) -> None:
        if self._journal is not None and self.core.record.changed:
            self._journal.keep(now, exchange.action, exchange.body)
            if self._journal.has_grown():
                self._journal.start_over(self.core)

    def _log(self, exchange: Exchange, status: int | None, code: str | None, record: Record) -> bytes:
        """Add the call to the call log. Return a header line with a request id that ends in the number of the call."""
        answered = status is not None and not exchange.silent
        call = Call(
            self.clock.now(), exchange.action, exchange.queue, status, code, exchange.fault, answered, record
        )  # fmt: skip
        self.calls.add(call)
        return b"x-amzn-requestid: 00000000-0000-4000-8000-%012x\r\n" % call.n
