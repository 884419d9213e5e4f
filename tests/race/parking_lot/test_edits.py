"""Of an edit, a release, a discard and a return of one letter at once, one wins, and the other is told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reprocessing.domain.message.envelope import unpack_attributes
from reprocessing.domain.message.redrive_attributes import MarkNames
from reprocessing.models import AuditEntry, Payload, Revision
from reprocessing.pipeline.parking_lot import act_on_parked, edit
from reprocessing.pipeline.parking_lot.edit import Alteration, ChangedMeanwhile, Edited, SeenLetter, Unsendable
from tests.race.abreast import behind, together
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)

BODY, MENDED, OTHER = '{"total": 1}', b'{"total": 2}', b'{"total": 3}'


class Parked(Workbench):
    def __init__(self) -> None:
        super().__init__(fields={"max_attempts": 1})
        self.redrive(BODY)
        (self.sent,) = self.delivered()
        self.take_back(self.sent)
        letter = self.letter()
        assert letter.finished_at
        assert letter.state == "parked"
        self.seen = SeenLetter(letter.finished_at, 0)

    def edit(self, body: bytes, *, by: str, replay: bool = False) -> Edited | ChangedMeanwhile | Unsendable:
        letter = self.letter().pk
        to = Alteration(body, unpack_attributes(bytes(Payload.objects.get(letter=letter).attributes)))
        return edit.edit_letter(letter, self.seen, to, names=MarkNames(), by=by, reason="a typo", replay=replay)

    def release(self, by: str = "anna") -> dict[int, str]:
        return dict(act_on_parked.release([self.letter().pk], by=by, reason="mended").refused)

    def discard(self) -> None:
        assert act_on_parked.discard([self.letter().pk], by="anna", reason="of no use").refused == {}

    def bodies(self) -> list[bytes]:
        self.replay()
        return [sent["Body"].encode() for sent in self.delivered()]


def _told(found: object, by: str, what: str) -> bool:
    return isinstance(found, ChangedMeanwhile) and found.why.startswith(
        f"it has changed since you opened it: {by} {what} it"
    )


@pytest.fixture
def bench() -> Parked:
    return Parked()


def test_of_two_edits_at_once_the_second_is_told_who_made_the_first(bench: Parked) -> None:
    first, second = behind(lambda: bench.edit(MENDED, by="anna"), lambda: bench.edit(OTHER, by="ben"))
    assert first == Edited(1)
    assert _told(second, "anna", "edited")
    assert [(made.no, made.by, bytes(made.body)) for made in Revision.objects.all()] == [(1, "anna", MENDED)]
    assert list(AuditEntry.objects.filter(act="edited").values_list("by", flat=True)) == ["anna"]


@pytest.mark.parametrize(
    ("action", "told", "sent"), [(Parked.release, "released", [BODY.encode()]), (Parked.discard, "discarded", [])]
)
def test_an_edit_that_waited_for_a_release_or_a_discard_changes_nothing(
    bench: Parked, action: Callable[[Parked], object], told: str, sent: list[bytes]
) -> None:
    _, edited = behind(lambda: action(bench), lambda: bench.edit(MENDED, by="ben", replay=True))
    assert _told(edited, "anna", told)
    assert (Revision.objects.count(), bench.bodies()) == (0, sent)


def test_a_release_that_waited_for_an_edit_sends_the_edited_body(bench: Parked) -> None:
    assert behind(lambda: bench.edit(MENDED, by="anna"), lambda: bench.release("ben")) == (Edited(1), {})
    assert bench.bodies() == [MENDED]


def test_a_release_that_waited_for_a_discard_is_told_of_it(bench: Parked) -> None:
    _, refused = behind(bench.discard, lambda: bench.release("ben"))
    assert refused == {bench.letter().pk: "it is no longer parked: it is discarded"}
    assert (bench.letter().state, bench.lane().phase) == ("discarded", "idle")
    assert list(AuditEntry.objects.values_list("by", flat=True)) == ["anna"]


@pytest.mark.parametrize("round_", range(3))
def test_a_return_beside_an_edit_is_recognised_and_the_letter_exists_once(round_: int) -> None:
    """The message that was sent before the edit is received again while the letter is edited and released."""
    bench = Parked()
    bench.come_back(bench.sent)
    works: list[Callable[[], object]] = [
        lambda: bench.edit(MENDED, by="anna", replay=True), lambda: bench.capture().captured.letters,
    ]  # fmt: skip
    assert together(works) == [Edited(1), 0]
    bodies = bench.bodies()
    assert bytes(bench.letter().body_hash) == bytes(Revision.objects.get().body_hash)
    assert (bodies, bench.letter().state) == ([MENDED], "delivered")
