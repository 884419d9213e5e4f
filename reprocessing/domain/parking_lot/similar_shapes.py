"""Put bodies whose top-level keys are nearly the same into one group. The decisions are explained in ADR 0051."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from math import log
from typing import Final

#: Two shapes with at least this weighted Jaccard similarity are one group.
SIMILAR: Final = 0.6
#: Added to each count of shapes, so that a key's rarity hardly changes its weight while few shapes are known.
_PRIOR: Final = 4

Keys = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """The sorted top-level keys (`keys`) of a JSON body. `n` messages have such a body.

    Attributes:
        leads: whether the shape has a group of its own, which similar shapes join.
        place: a rank. If a new shape is equally similar to two shapes, it joins the shape with the lower rank.
    """

    digest: bytes
    keys: Keys
    leads: bool = True
    n: int = 0
    place: int = 0


def leaders(known: Sequence[Shape], new: Iterable[Shape]) -> dict[bytes, bytes]:
    """Return the groups that new shapes join: by a new shape's digest, the digest of the shape that leads its group.

    A new shape that joins no group leads a new group, which later shapes may join. New shapes are taken in a fixed
    order, the shape with the most messages first. So the order in which messages were read does not matter.
    """
    fresh = sorted(new, key=lambda shape: (-shape.n, shape.keys))
    weights = _weights([*known, *fresh])
    leading = _Leaders(weights)
    for shape in sorted(known, key=lambda shape: shape.place):
        if shape.leads:
            leading.add(_Weighed(shape, weights))
    joined = dict[bytes, bytes]()
    for shape in fresh:
        mine = _Weighed(shape, weights)
        if near := leading.nearest(mine):
            joined[shape.digest] = near.shape.digest
        else:
            leading.add(mine)
    return joined


class _Weighed:
    """A shape with the set and the weight of its keys."""

    __slots__ = ("keys", "shape", "weight")

    def __init__(self, shape: Shape, weights: Mapping[str, int]) -> None:
        self.shape, self.keys = shape, frozenset(shape.keys)
        self.weight = sum(weights[key] for key in self.keys)


class _Leaders:
    """The shapes that lead a group, indexed by their keys, so that a new shape is compared with only a few of them."""

    def __init__(self, weights: Mapping[str, int]) -> None:
        self._weights = weights
        self._shapes = list[_Weighed]()
        self._having = defaultdict[str, list[int]](list)

    def add(self, shape: _Weighed) -> None:
        for key in shape.keys:
            self._having[key].append(len(self._shapes))
        self._shapes.append(shape)

    def nearest(self, mine: _Weighed) -> _Weighed | None:
        """Return the leading shape that is most similar to `mine`; None: no shape is similar enough.

        If several shapes are equally similar, return the shape that was added first. A shape that shares too few keys
        with `mine` to be similar enough is skipped without a comparison.
        """
        most = [0, *accumulate(sorted((self._weights[key] for key in mine.keys), reverse=True))]
        common = Counter(chain.from_iterable(self._having.get(key, ()) for key in mine.keys))
        found = [
            (_similarity(mine, self._shapes[place], self._weights), -place)
            for place, n in common.items() if most[n] >= SIMILAR * mine.weight
        ]  # fmt: skip
        similarity, place = max(found, default=(0.0, 0))
        return self._shapes[-place] if similarity >= SIMILAR else None


def _weights(shapes: Sequence[Shape]) -> dict[str, int]:
    """Return the weight of each top-level key: a key that few shapes have weighs more, because it is specific.

    Weights are integers, so that sums do not depend on the order of the keys.
    """
    having = Counter(key for shape in shapes for key in set(shape.keys))
    return {key: round(log(1 + (len(shapes) + _PRIOR) / (n + _PRIOR)) ** 2 * 1_000_000) for key, n in having.items()}


def _similarity(one: _Weighed, other: _Weighed, weights: Mapping[str, int]) -> float:
    """Return the similarity of two shapes (weighted Jaccard): the weight of common keys divided by that of all keys."""
    least, most = sorted((one.weight, other.weight))
    if least < SIMILAR * most:  # cannot be similar enough
        return 0.0
    common = sum(weights[key] for key in one.keys & other.keys)
    return common / (one.weight + other.weight - common)
