"""Find letters whose body is a pointer to an S3 object that does not exist any more: the consumer could not read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from reprocessing.domain.message import s3_pointer
from reprocessing.domain.message.envelope import unpack_attributes
from reprocessing.gateways.aws_services import are_gone
from reprocessing.models import Run
from reprocessing.store.parking_lot import s3_pointers

LETTERS_READ: Final = 20_000  #: most letters of a run whose bodies are searched for pointers to S3
POINTERS_ASKED: Final = 500  #: most pointers that S3 is asked about


@dataclass(frozen=True, slots=True)
class CheckedPointers:
    """The result of a check of bodies in S3.

    `asked`: how many S3 objects were checked. `missing`: ids of messages whose S3 object does not exist.
    """

    asked: int
    missing: list[str]


def find_missing_bodies(run: Run) -> CheckedPointers:
    """Find letters of a run whose S3 object does not exist any more. At most 500 letters with a pointer are checked.

    If S3 does not answer, the object counts as existing.
    """
    found = {
        letter.message_id: pointer
        for letter in s3_pointers.possible_pointers(run.pk, among=LETTERS_READ, most=POINTERS_ASKED)
        if (pointer := s3_pointer.read(bytes(letter.body), unpack_attributes(bytes(letter.attributes)))) is not None
    }
    gone = are_gone(set(found.values()), run.dlq.region, run.dlq.role_arn) if found else set()
    return CheckedPointers(len(found), [message_id for message_id, pointer in found.items() if pointer in gone])
