"""The small world of a cell: a dlq full of letters, the queue they died in, and when all of it is finished."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any, Final

from django_celery_beat.models import IntervalSchedule

from reprocessing.models import Attempt, Breaker, Claim, DeadLetterQueue, DlqCopy, Lane, Letter, Run
from reprocessing.store.ordering import lanes
from reprocessing.store.runs import run_transitions
from tests.proof.failpoints.shapes import Shape
from tests.reprocessing.pipeline.bench import Workbench
from tests.stories.scene import dead, lettered

#: Letters of one attempt group, and tries of one letter.
GROUP, TRIES = 5, 6
#: Letters a second, and letters at once.
RATE, BURST = 80, 20
#: Seconds within which what fails is back: its consumer fails it at once.
WINDOW: Final = 0.5
#: Seconds after which a run gives up in an outage, and how often the first message of each key fails in it.
GIVES_UP_AFTER, OUTLASTS = 1, 2
#: Microseconds between two captures, by beat.
OFTEN = 400_000


class World:
    """Letters of several keys, shuffled, in a dlq that beat redrives.

    Attributes:
        letters: how many.
        failures: how often the consumer fails which event.
    """

    def __init__(self, shape: Shape, dice: Random, *, few: bool = False) -> None:
        self.shape = shape
        self._bench = Workbench(
            fifo=shape.fifo,
            visibility=2,
            fields={**shape.policy, "idempotency_key": "attribute:event", "max_attempts": TRIES},
            target_fields={"rate": RATE, "burst": BURST},
        )
        self.source, self.dlq = (url.rsplit("/", 1)[-1] for url in (self._bench.source_url, self._bench.dlq_url))
        self.source_url = self._bench.source_url
        Breaker.objects.update(threshold=10_000, at_least=10_000)
        if shape.trouble == "outage":
            Breaker.objects.update(threshold=3, cooldown=0.5, cooldown_cap=1, canaries_to_close=1)
            DeadLetterQueue.objects.update(waves=True, give_up_after=GIVES_UP_AFTER)
        if shape.absence:
            self._bench.judge_by_absence(window=WINDOW)
        few |= shape.trouble == "outage"  # whose letters go one by one at first, and fail as often as all others
        messages = self._messages(dice, keys=4 if few else dice.randint(6, 8) + 2 * shape.absence)
        self.letters = len(messages)
        dead(self._bench, self._bench.source_url, messages)
        self._bench.sqs.set_queue_attributes(QueueUrl=self.source_url, Attributes={"VisibilityTimeout": "2"})
        self._automate()

    def _messages(self, dice: Random, *, keys: int) -> list[dict[str, Any]]:
        """In the order of their numbers, the keys mixed; one event in five fails, one in thirty for ever.

        Where the next letter goes as soon as the target took one, a return is always late: there only each key's last
        event fails, so that the order of all others can be judged strictly.
        """
        most = 4 if self.shape.absence else 8
        places = [f"k{number}" for number in range(keys) for _ in range(dice.randint(most - 1, most))]
        dice.shuffle(places)
        numbers: Counter[str] = Counter()
        messages, event, self.failures = [], "", dict[str, int]()
        for key in places:
            numbers[key] += 1
            event = f"{key}.{numbers[key]}"
            if self.shape.absence or numbers[key] == places.count(key):
                weights = (80, 12, 5, 3) if self.shape.absence else (40, 30, 20, 10)
                self.failures[event] = dice.choices((0, 1, 2, TRIES * 9), weights=weights)[0]
            group = key if self.shape.fifo else None
            messages.append(lettered(event, group=group, key=key, n=str(numbers[key]), event=event))
        self.failures[event] = max(1, self.failures[event])  # the last one of all, so that one at least comes back
        self.failures |= self._troubles(set(places), f"{places[0]}.1")
        return messages

    def _troubles(self, keys: set[str], first: str) -> dict[str, int]:
        match self.shape.trouble:
            case "poison":
                return {first: TRIES * 9}
            case "outage":
                return {f"{key}.1": OUTLASTS for key in keys}
            case _:
                return {}

    def _automate(self) -> None:
        often, _ = IntervalSchedule.objects.get_or_create(every=OFTEN, period=IntervalSchedule.MICROSECONDS)
        DeadLetterQueue.objects.filter(pk=self._bench.dlq.pk).update(
            mode="automatic", next_poll_at=None, interval=often, at_once=True
        )

    def is_finished(self) -> bool:
        """Whether both queues are empty, and nothing in the tables is under way, before and after they were looked at.

        While no attempt begins, messages go from the source into the dlq, and from there into the tables: a look at
        each in this order misses none. A person lets a run go on that has paused itself.
        """
        self._resume()
        if not self._rests():
            return False
        sent = Attempt.objects.count()
        is_empty = not self._bench.left(self.source_url) and not self._bench.left()
        return is_empty and self._rests() and Attempt.objects.count() == sent

    def _resume(self) -> None:
        for run in Run.objects.filter(state="paused"):
            run_transitions.resume(run.pk, by="a person", reason="the target is well again")

    def _rests(self) -> bool:
        finished = Letter.objects.filter(state__in=("delivered", "parked")).count()
        return finished == self.letters and not any(self.open().values())

    def open(self) -> dict[str, int]:
        """What is under way, or was left: how many of each kind; of a finished world none.

        A copy to be deleted may have been, by one who did not live to note it: when it would have come to sight again
        and the dlq is empty, it is gone.
        """
        target, now = self._bench.target, lanes.database_now()
        copies = DlqCopy.objects.exclude(state="gone").exclude(state="delete", visible_until__lt=now)
        return {
            "letters not captured": max(0, self.letters - Letter.objects.count()),
            "letters not finished": Letter.objects.exclude(state__in=("delivered", "parked")).count(),
            "letters parked without a reason": Letter.objects.filter(state="parked", reason="").count(),
            "lanes not idle": Lane.objects.exclude(phase="idle").count(),
            "attempts open": Attempt.objects.filter(closed_at=None).count(),
            "attempts that hold a lane": Attempt.objects.filter(holds_lane=True).count(),
            "claims held": Claim.objects.filter(target=target, state="held").count(),
            "copies not deleted": copies.count(),
            "dlqs leased": DeadLetterQueue.objects.filter(leased_until__gt=now).count(),
        }

    def states(self) -> dict[str, str]:
        return dict(Letter.objects.values_list("message_id", "state"))

    def told(self) -> str:
        phases = Lane.objects.exclude(phase="idle").values_list("phase", "due_at", "hinted_until", "why")
        dlq = DeadLetterQueue.objects.values(
            "leased_until", "orphans_hidden_until", "drained_through", "last_error"
        ).get()
        left = {"source": self._bench.left(self.source_url), "dlq": self._bench.left()}
        return f"open {self.open()}, queues {left}, lanes {list(phases)[:5]}, dlq {dlq}, now {lanes.database_now()}"

    def close(self) -> None:
        for url in (self.source_url, self._bench.dlq_url):
            self._bench.sqs.delete_queue(QueueUrl=url)
