"""An edited letter is sent as edited; its captured bytes stay, and returns of every version are recognised."""

from __future__ import annotations

import hashlib
import uuid

import pytest

from reprocessing.domain.message.envelope import Attribute, pack_attributes, unpack_attributes
from reprocessing.domain.message.redrive_attributes import MarkNames
from reprocessing.models import AuditEntry, Claim, DeadLetterQueue, Letter, Payload, Revision
from reprocessing.pipeline.parking_lot import edit
from reprocessing.pipeline.parking_lot.edit import Alteration, ChangedMeanwhile, Edited, SeenLetter, Unsendable
from reprocessing.pipeline.runs import place_letters
from reprocessing.store.maintenance import counters
from reprocessing.store.parking_lot import message_edits
from reprocessing.store.parking_lot.message_edits import EditableLetter
from reprocessing.store.routing import rule_changes
from tests.reprocessing.pipeline.bench import Clock, Workbench, enqueued, redriven

pytestmark = pytest.mark.django_db(transaction=True)

NAMES = MarkNames()
BODY, MENDED = '{"total": 1}', b'{"total": 2}'
FIRST = {"note": Attribute("String", "first")}
STAND = EditableLetter(
    letter_id=1, dlq_id=1, message_id="m", state="parked", finished_at=None, revision=0, size=27, body=BODY.encode(),
    attributes=pack_attributes(FIRST), system={}, largest=2**20, ordering_key=None, placed=True, has_source=True,
)  # fmt: skip


def _parked(**fields: object) -> Workbench:
    bench = Workbench(fields={"max_attempts": 1, **fields})
    bench.enqueue(BODY, note="first")
    with bench.refusing(BODY):
        bench.replay()
    assert bench.letter().state == "parked"
    return bench


def _seen(letter: Letter) -> SeenLetter:
    assert letter.finished_at
    return SeenLetter(letter.finished_at, letter.revision.no if letter.revision else 0)


def _own(letter: Letter) -> dict[str, Attribute]:
    return unpack_attributes(bytes(Payload.objects.get(letter=letter).attributes))


def _edit(  # noqa: PLR0913  # each by its name
    letter: Letter, body: bytes = MENDED, attributes: dict[str, Attribute] | None = None, *,
    seen: SeenLetter | None = None, key: str | None = None, by: str = "anna", replay: bool = True,
) -> Edited | ChangedMeanwhile | Unsendable:  # fmt: skip
    to = Alteration(body, _own(letter) if attributes is None else attributes, key)
    return edit.edit_letter(letter.pk, seen or _seen(letter), to, names=NAMES, by=by, reason="a typo", replay=replay)


def test_what_was_written_is_sent_byte_for_byte_and_what_was_captured_stays() -> None:
    bench = _parked()
    before = Payload.objects.values_list("body", "attributes", "system").get()
    attributes = {"note": Attribute("String", "second"), "more": Attribute("Number", "7")}
    assert _edit(bench.letter(), attributes=attributes) == Edited(1)
    bench.replay()
    (sent,) = bench.delivered()
    own = {name: one["StringValue"] for name, one in sent["MessageAttributes"].items() if name in attributes}
    assert (sent["Body"].encode(), own) == (MENDED, {"note": "second", "more": "7"})
    assert Payload.objects.values_list("body", "attributes", "system").get() == before
    letter = bench.letter()
    assert (letter.state, bytes(letter.body_hash)) == ("delivered", hashlib.sha256(MENDED).digest())


def test_an_edit_without_replay_stays_parked_is_no_failure_and_the_next_edit_follows_it() -> None:
    bench = _parked()
    before = {hour.what: hour.n for hour in counters.counts_by_hour(1)}
    assert _edit(bench.letter(), replay=False) == Edited(1)
    assert (bench.letter().state, {hour.what: hour.n for hour in counters.counts_by_hour(1)}) == ("parked", before)
    assert _edit(bench.letter(), b'{"total": 3}') == Edited(2)
    bench.replay()
    assert bench.delivered_bodies() == ['{"total": 3}']
    assert [bytes(revision.body) for revision in Revision.objects.order_by("no")] == [MENDED, b'{"total": 3}']


@pytest.mark.soak
def test_copies_of_what_was_sent_before_and_after_the_edit_are_both_known() -> None:
    bench = redriven(BODY, fields={"max_attempts": 1})
    (first,) = bench.delivered()
    bench.take_back(first)
    assert _edit(bench.letter()) == Edited(1)
    bench.replay()
    (second,) = bench.delivered()
    once = bench.take_back(first).captured
    assert (once.returns, once.letters, bench.letter().state) == (1, 0, "delivered")
    twice = bench.take_back(second).captured
    assert (twice.returns, twice.letters, bench.letter().state) == (1, 0, "parked")


@pytest.mark.parametrize(("replay", "now"), [(False, ""), (True, "; it is waiting")])
def test_of_two_who_saw_the_same_letter_one_edits_it_and_the_other_is_told(*, replay: bool, now: str) -> None:
    bench = _parked()
    seen = _seen(bench.letter())
    assert _edit(bench.letter(), seen=seen, replay=replay) == Edited(1)
    told = _edit(bench.letter(), b'{"total": 9}', seen=seen, by="ben")
    assert isinstance(told, ChangedMeanwhile)
    assert told.why.startswith("it has changed since you opened it: anna ")
    assert told.why.endswith(f' UTC ("a typo"){now}')
    assert [revision.by for revision in Revision.objects.all()] == ["anna"]


def test_who_edited_what_and_why_is_recorded_without_a_word_of_it() -> None:
    bench = _parked()
    _edit(bench.letter(), attributes={"more": Attribute("String", "canary")}, replay=False)
    review = AuditEntry.objects.get(act="edited")
    assert (review.by, review.reason, review.before) == ("anna", "a typo", {"revision": 0, "size": 27})
    assert review.after == {
        "revision": 1, "size": 28, "digest": hashlib.sha256(MENDED).hexdigest(), "attributes": ["more", "note"],
        "body": True, "new_key": False,
    }  # fmt: skip


def test_a_claim_is_for_the_bytes_that_went_and_the_key_stays_unless_another_is_asked_for() -> None:
    bench = _parked(idempotency_key="attribute:note")
    _edit(bench.letter())
    bench.replay()
    claim = Claim.objects.get()
    assert (claim.state, bytes(claim.body_hash)) == ("delivered", hashlib.sha256(MENDED).digest())
    assert bench.letter().idempotency_key == "first"


def test_a_new_key_is_a_claim_of_its_own_and_the_old_one_stays() -> None:
    bench = _parked(idempotency_key="attribute:note")
    key = str(uuid.uuid4())
    _edit(bench.letter(), key=key)
    bench.replay()
    assert sorted(Claim.objects.values_list("state", flat=True)) == ["delivered", "free"]
    assert bench.delivered()[0]["MessageAttributes"]["IdempotencyKey"]["StringValue"] == key
    assert (bench.letter().idempotency_key, Revision.objects.get().idempotency_key) == (key, key)


@pytest.mark.soak
def test_a_fifo_queue_takes_what_was_edited_though_it_may_have_had_the_letter_before(clock: Clock) -> None:
    bench = Workbench(fifo=True, fields={"max_attempts": 1})
    bench.enqueue(BODY, key="a")
    bench.replay_and_die(sent=True)
    clock.advance(60)
    bench.replay()
    assert bench.letter().state == "parked"
    _edit(bench.letter())
    bench.replay()
    assert bench.delivered_bodies() == [BODY, MENDED.decode()]


@pytest.mark.soak
def test_rules_are_asked_about_what_will_be_sent() -> None:
    rule = {"action": "quarantine", "conditions": ["body:total equals 1"], "enabled": True}
    rule_changes.save_rule("ones", rule, by="anna", reason="a test")
    rule_changes.save_rule("twos", {**rule, "conditions": ["body:total equals 2"]}, by="anna", reason="a test")
    bench = redriven('{"total": 1}', fields={"max_attempts": 1})
    assert bench.letter().reason == "quarantined"
    _edit(bench.letter())
    bench.replay()
    letter = bench.letter()
    assert (letter.state, letter.rule and letter.rule.name) == ("parked", "twos")


def test_a_letter_without_the_key_of_its_place_gets_both_by_an_edit() -> None:
    bench = enqueued(BODY, fields={"ordering_key": "attribute:customer"})
    assert bench.letter().reason == "no_ordering_key"
    _edit(bench.letter(), attributes={"customer": Attribute("String", "c-7")}, key="k-1")
    bench.replay()
    letter = bench.letter()
    assert (letter.state, letter.ordering_key, letter.idempotency_key) == ("delivered", "c-7", "k-1")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (BODY.encode(), "Nothing is changed."),
        (b'{"total": ', "The body was JSON and no longer is: Expecting value, line 1, column 11."),
        (b"", "The body is empty; SQS does not accept empty messages."),
        (b'{"a":"\x01"}', "The body has a character that SQS does not accept (U+0001, character 7)."),
        (b'"' + b"x" * 2**20 + b'"', "Body and attributes have 1,048,593 bytes; its target accepts 1,048,576."),
    ],
)
def test_a_body_that_no_queue_would_take_is_refused_in_a_sentence(body: bytes, told: str) -> None:
    assert told in edit.problems(STAND, Alteration(body, FIRST), NAMES)


@pytest.mark.parametrize(
    ("name", "attribute", "told"),
    [
        ("a b", ("String", "x"), "An attribute's name has 1 to 256 letters, digits, _ . and -, "),
        (
            "a",
            ("Text", "x"),
            "The type of a is not valid: String, Number or Binary, with an optional label after a full stop.",
        ),
        ("a", ("String", ""), "a is empty; SQS does not accept empty values. Remove it, or enter a value."),
        ("a", ("Number", "7 and more"), "a is a Number, and its value is not a number of at most 38 digits."),
        ("a", ("Number", "1" * 39), "a is a Number, and its value is not a number of at most 38 digits."),
        (
            "RedriveId",
            ("String", "x"),
            "RedriveId stays as it is: it was added by this service, or by an earlier redrive.",
        ),
        ("traceparent", ("String", "x"), "traceparent stays as it is: it links the message to its trace."),
        ("ERROR_CODE", ("String", "x"), "ERROR_CODE stays as it is: AWS added it when delivery failed."),
    ],
)
def test_an_attribute_that_cannot_be_sent_is_refused_in_a_sentence(
    name: str, attribute: tuple[str, str], told: str
) -> None:
    (problem,) = edit.problems(STAND, Alteration(MENDED, FIRST | {name: Attribute(*attribute)}), NAMES)
    assert problem.startswith(told)


def test_room_is_left_for_the_attributes_that_are_added_on_replay() -> None:
    attributes = {f"a{number}": Attribute("String", "x") for number in range(7)}
    assert edit.problems(STAND, Alteration(MENDED, attributes), NAMES) == [
        "There are 7 attributes; SQS accepts 10, of which the service adds 4. Remove 1."
    ]


def test_an_edit_that_cannot_be_sent_or_has_no_author_changes_nothing() -> None:
    bench = _parked()
    assert isinstance(_edit(bench.letter(), b""), Unsendable)
    with pytest.raises(ValueError, match="must not be empty"):
        _edit(bench.letter(), by=" ")
    assert (Revision.objects.count(), bench.letter().state) == (0, "parked")


def test_an_edit_names_the_keys_that_it_changes() -> None:
    keys = edit.keys_of(DeadLetterQueue(ordering_key="attribute:note", message_type="body:total"))
    assert edit.changed_keys(STAND, Alteration(MENDED, {"note": Attribute("String", "second")}), keys) == [
        "This changes attribute:note, from which the ordering key is read.",
        "This changes body:total, from which the message type is read.",
    ]
    assert edit.changed_keys(STAND, Alteration(BODY.encode(), FIRST), keys) == []


def _order(bench: Workbench, **attributes: str) -> str:
    stand = message_edits.read_letter(bench.letter().pk)
    assert stand
    to = Alteration(MENDED, {name: Attribute("String", value) for name, value in attributes.items()})
    return edit.place_after_edit(stand, to, place_letters.policy_of(DeadLetterQueue.objects.get(pk=bench.dlq.pk)))


def test_a_letter_that_has_a_key_keeps_its_place_whatever_the_edit_changes() -> None:
    bench = _parked(ordering_key="attribute:note")
    kept = "The message keeps its ordering key and its place in the key queue, whatever the edit changes."
    assert [_order(bench, note="first"), _order(bench, note="second"), _order(bench)] == [kept] * 3
    _edit(bench.letter(), attributes={"note": Attribute("String", "second")})
    assert bench.letter().ordering_key == "first"


def test_a_letter_without_a_key_goes_alone_and_no_edit_gives_it_one() -> None:
    bench = _parked(ordering_key="attribute:customer", missing_key="lane")
    assert _order(bench, customer="c-7") == (
        "It has no ordering key, also after the edit: it is sent without ordering."
    )
    _edit(bench.letter(), attributes={"customer": Attribute("String", "c-7")})
    assert (bench.letter().ordering_key, bench.letter().single) == (None, True)


def test_a_letter_that_was_parked_without_a_place_is_told_which_one_the_edit_gives_it() -> None:
    bench = enqueued(BODY, fields={"ordering_key": "attribute:customer"})
    assert _order(bench, note="first") == (
        "It has no ordering key, also after the edit: attribute:customer finds no key. "
        "If you release it, it is sent without ordering."
    )
    assert _order(bench, customer="c-7") == "The edit gives it an ordering key and a place in the key queue."
    DeadLetterQueue.objects.update(missing_key="lane")
    assert _order(bench) == "It had no ordering key, also after the edit: it is sent without ordering."
    Letter.objects.update(source=None)
    assert _order(bench) == "Its target is not known, so it cannot be released."
