"""Find letters whose body is stored in S3 and is gone there: their consumers would fail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from reprocessing.domain.message import s3_pointer
from reprocessing.domain.message.envelope import unpack_attributes
from reprocessing.gateways.aws_services import are_gone
from reprocessing.models import Run
from reprocessing.store.parking_lot import s3_pointers

LETTERS_READ: Final = 20_000  #: letters of a run in which pointers are looked for
POINTERS_ASKED: Final = 500  #: pointers that S3 is asked about


@dataclass(frozen=True, slots=True)
class CheckedPointers:
    """Numbers of a check. `asked`: bodies that were looked up in S3. `missing`: ids of messages whose body is gone."""

    asked: int
    missing: list[str]


def find_missing_bodies(run: Run) -> CheckedPointers:
    """Return which of a run's first LETTERS_READ letters lack their body in S3.

    If S3 does not answer, a body counts as present.
    """
    found = {
        letter.message_id: pointer
        for letter in s3_pointers.possible_pointers(run.pk, among=LETTERS_READ, most=POINTERS_ASKED)
        if (pointer := s3_pointer.read(bytes(letter.body), unpack_attributes(bytes(letter.attributes)))) is not None
    }
    gone = are_gone(set(found.values()), run.dlq.region, run.dlq.role_arn) if found else set()
    return CheckedPointers(len(found), [message_id for message_id, pointer in found.items() if pointer in gone])
