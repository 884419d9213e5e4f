"""A letter of which it is not known what became of it after the backup that PostgreSQL was restored from."""

from __future__ import annotations

from typing import Final, LiteralString

from django.db import models
from django.db.models import F, Q

from reprocessing.models.letter import DeadLetter

#: In a review of a letter: what a person said of it, kept when the doubt is not.
AFTER_A_RESTORE: Final[LiteralString] = "after_a_restore"


class Word(models.TextChoices):
    """What a person said of it."""

    DELIVERED = "delivered", "delivered since"
    PARKED = "parked", "parked for a person"
    REPLAY = "replay", "to be replayed"


class Doubt(models.Model):
    """One letter, from the hold until its release.

    `receives`: how often the copy that is held of it had been received when the hold began; null: none was held.
    `arrived`: it was captured anew after that, from a message that had been there before. `came_back`: the number of
    an attempt that came back and is forgotten. `word`: what a person decided, empty until then.
    """

    letter = models.OneToOneField(DeadLetter, primary_key=True, on_delete=models.PROTECT, related_name="doubt")
    receives = models.IntegerField(null=True, blank=True)
    arrived = models.BooleanField(db_default=False)
    came_back = models.IntegerField(null=True, blank=True)
    word = models.TextField(choices=Word.choices, db_default="", blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "redrive_doubt"
        default_permissions = ()
        constraints = [
            models.CheckConstraint(
                condition=Q(word="", decided_at=None) | (~Q(word="") & Q(decided_at__isnull=False)),
                name="a_word_about_a_doubt_says_when",
            ),
        ]
        indexes = [models.Index(F("letter"), condition=Q(word=""), name="doubts_nobody_decided")]

    def __str__(self) -> str:
        return f"doubt about {self.letter_id}"


#: Of a copy c: nobody has seen it since the hold began, so what is known of it may be long untrue.
UNSEEN: Final[LiteralString] = (
    "EXISTS (SELECT FROM redrive_doubt x WHERE x.letter_id = c.letter_id AND c.receives <= x.receives)"
)
