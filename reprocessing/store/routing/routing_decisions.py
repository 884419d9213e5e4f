"""Write the rules' decisions about letters, and find letters that an outdated version of the rules holds or delays.

Every change of a rule raises the version of all rules (the rulebook's version). A letter stores the version of the
rules that decided about it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reprocessing.store import rows
from reprocessing.store.ordering.lane_head import first_letters
from reprocessing.store.replay.settlement_effects import COPY_UNTIL
from reprocessing.store.safety.send_limits import UNHEALTHY_TARGETS

#: Highest number of letters, or lanes, in one statement.
GROUP = 500
#: Seconds after which rules are evaluated again on a letter that could not be decrypted.
UNREADABLE_SECONDS: Final = 60.0
#: A letter about which a person decided gets this rulebook version. No version is higher, so no rule decides again.
BY_HAND: Final = 9_000_000_000_000_000_000


@dataclass(frozen=True, slots=True)
class RoutingDecision:
    """A decision of the rules about one letter."""

    letter_id: int
    was: int  #: the rulebook version of the letter when it was loaded
    route: str = ""  #: name of the rule's action, "erred" (a rule failed), or empty: no rule decided
    rule_id: int | None = None
    target_id: int | None = None
    rate_class_id: int | None = None
    delay: float | None = None  #: seconds from now until the letter is due
    keeps_place: bool = False  #: whether target and rate class stay unchanged


# If the same rule decides again, its delay does not begin again; after an attempt, only the letter's backoff delays it.
# If the letter gets another target, its idempotency key becomes free at the former target when no copy can be there.
# Decisions of a deleted rule or an old rulebook version are not written. `coalesce(l.lane_id, 0)` keeps the planner
# from an index by which it would read all letters of a long lane.
_WRITE = f"""
WITH asked AS (
    SELECT * FROM unnest(%(letter_id)b::bigint[], %(was)b::bigint[], %(route)b::text[], %(rule_id)b::bigint[],
                         %(target_id)b::bigint[], %(rate_class_id)b::bigint[], %(delay)b::float8[],
                         %(keeps_place)b::bool[])
           AS a(letter_id, was, route, rule_id, target_id, rate_class_id, delay, keeps)
), there AS (
    SELECT id FROM redrive_rule WHERE id = ANY(%(rule_id)b::bigint[]) ORDER BY id FOR KEY SHARE
), found AS (
    SELECT l.id, l.target_id AS old_target, l.rule_id AS old_rule, l.route AS old_route, a.*,
           coalesce(a.delay IS NOT NULL AND l.rule_id = a.rule_id AND l.route = 'replay'
                    AND l.attempts + l.not_sent > l.earlier, false) AS had
      FROM asked a JOIN redrive_letter l ON l.id = a.letter_id JOIN redrive_lane n ON n.id = l.lane_id
     WHERE l.state = 'waiting' AND l.rulebook_version = a.was AND (%(owned)b::bool OR n.phase <> 'leased')
       AND coalesce(l.lane_id, 0) = ANY(%(lanes)b::bigint[])
       AND (a.rule_id IS NULL OR a.rule_id IN (SELECT id FROM there))
       AND coalesce((SELECT version FROM redrive_rulebook WHERE id = 1), 0) = %(version)b
     ORDER BY l.id FOR UPDATE OF l
), moved AS (
    UPDATE redrive_letter l
       SET route = CASE WHEN f.had THEN 'replay' ELSE f.route END, rule_id = f.rule_id, rulebook_version = %(version)b,
           target_id = CASE WHEN f.keeps THEN l.target_id ELSE coalesce(f.target_id, l.target_id) END,
           rate_class_id = CASE WHEN f.keeps THEN l.rate_class_id ELSE f.rate_class_id END,
           due_at = CASE WHEN f.had OR (f.delay IS NULL AND f.old_route <> 'delay') THEN l.due_at
                         WHEN f.delay IS NULL THEN NULL
                         WHEN f.old_route = 'delay' AND f.old_rule = f.rule_id
                         THEN least(l.due_at, redrive_now() + make_interval(secs => f.delay))
                         ELSE greatest(l.due_at, redrive_now() + make_interval(secs => f.delay)) END
      FROM found f WHERE l.id = f.id
    RETURNING l.id, l.dlq_id, l.idempotency_key, l.target_id, f.old_target, f.old_rule, f.old_route, l.rule_id, l.route
), freed AS (
    UPDATE redrive_claim c SET state = CASE WHEN m.until IS NULL THEN 'free' ELSE 'held' END, until = m.until
      FROM (SELECT l.*, CASE WHEN l.target_id <> l.old_target THEN {COPY_UNTIL} END AS until FROM moved l) m
     WHERE m.target_id <> m.old_target AND m.idempotency_key IS NOT NULL AND c.target_id = m.old_target
       AND c.key_space = m.dlq_id::text AND c.key_hash = sha256(convert_to(m.idempotency_key, 'UTF8'))
       AND c.letter_id = m.id AND c.state = 'held'
)
SELECT id AS letter_id, (rule_id, route) IS DISTINCT FROM (old_rule, old_route) AS new FROM moved
"""  # noqa: S608  # the inserted text is a constant

# In the order of their ids, so that workers counting the same rules do not deadlock.
_COUNT = """
WITH counted AS (
    SELECT u.id, c.match_count, c.error_count, c.last_error
      FROM unnest(%(rules)b::bigint[], %(match_count)b::bigint[], %(error_count)b::bigint[], %(last_errors)b::text[])
           AS c(rule_id, match_count, error_count, last_error) JOIN redrive_rule u ON u.id = c.rule_id
     ORDER BY u.id FOR NO KEY UPDATE OF u
)
UPDATE redrive_rule u
   SET match_count = u.match_count + c.match_count, error_count = u.error_count + c.error_count,
          last_error = coalesce(nullif(c.last_error, ''), u.last_error),
       last_hit_at = CASE WHEN c.match_count > 0 THEN redrive_now() ELSE u.last_hit_at END
  FROM counted c WHERE u.id = c.id
"""

_WHY = """
UPDATE redrive_lane n SET why = w.why
  FROM unnest(%(lanes)b::bigint[], %(whys)b::text[]) AS w(lane_id, why) WHERE n.id = w.lane_id AND n.phase <> 'leased'
"""

_PUT_OFF_UNREADABLE = """
UPDATE redrive_letter l SET due_at = greatest(l.due_at, redrive_now() + make_interval(secs => %(seconds)b::float8))
  FROM redrive_lane n
 WHERE l.id = ANY(%(letters)b::bigint[]) AND n.id = l.lane_id AND l.state = 'waiting'
   AND coalesce(l.lane_id, 0) = ANY(%(lanes)b::bigint[]) AND (%(owned)b::bool OR n.phase <> 'leased')
RETURNING l.id
"""

# Letters that rules of another rulebook version hold or delay.
_STOPPED = """
WITH stopped AS MATERIALIZED (
    SELECT l.id AS letter_id, l.lane_id, l.dlq_id FROM redrive_letter l
     WHERE l.rule_id IS NOT NULL AND l.rule_id IN (SELECT id FROM redrive_rule) AND l.state = 'waiting'
       AND l.route IN ('hold', 'erred', 'delay') AND l.rulebook_version <> %(version)b AND l.id > %(above)b
)
SELECT letter_id, lane_id, dlq_id FROM stopped ORDER BY letter_id LIMIT %(limit)b
"""

# Lanes with an open breaker or an unhealthy target are not leased, so changed rules would not decide about their heads.
# This statement removes the breaker from such lanes: each can then be leased once, and rules decide about its head.
_LOOK_AGAIN = f"""
WITH blocked AS MATERIALIZED (
    SELECT id FROM redrive_breaker WHERE state <> 'closed' OR target_id IN ({UNHEALTHY_TARGETS})
)
UPDATE redrive_lane n SET breaker_id = NULL
  FROM (SELECT n.id FROM redrive_lane n
         WHERE EXISTS (SELECT FROM blocked)
           AND n.phase = 'ready' AND n.due_at <= (SELECT redrive_now()) AND n.breaker_id IN (SELECT id FROM blocked)
           AND (SELECT l.rulebook_version < %(version)b AND (%(rules)b::bool OR l.rulebook_version > 0)
                  FROM {first_letters("l", "n.id")})
         ORDER BY n.id LIMIT %(limit)b FOR UPDATE OF n) due
 WHERE n.id = due.id
"""  # noqa: S608  # as above


@dataclass(frozen=True, slots=True)
class Written:
    """A letter whose decision was written. `new`: the deciding rule, or what it decided (the route), has changed."""

    letter_id: int
    new: bool


def write(decided: Sequence[RoutingDecision], lanes: Collection[int], *, version: int, owned: bool) -> list[Written]:
    """Write the rules' decisions about letters; return the letters that were written.

    The caller has locked the letters' lanes. Letters that changed since they were loaded are left out. `version`: the
    rulebook version that decided; if there is a newer version, nothing is written. `owned`: the caller leases the
    lanes; if false, letters of leased lanes are also left out.
    """
    values = {**rows.arrays(RoutingDecision, decided), "lanes": list(lanes), "version": version, "owned": owned}
    return rows.fetch(Written, _WRITE, values)


def put_off_unreadable(letters: Collection[int], lanes: Collection[int], *, owned: bool) -> set[int]:
    """Delay queued letters for 60 seconds, because they could not be decrypted for the rules; return their ids.

    The caller has locked the lanes. `owned`: the caller also has a lease on the lanes; if false, letters of leased
    lanes are not changed.
    """
    values = {"letters": list(letters), "lanes": list(lanes), "owned": owned, "seconds": UNREADABLE_SECONDS}
    return set(rows.column(int, _PUT_OFF_UNREADABLE, values))


def add_counts(match_count: Mapping[int, int], error_count: Mapping[int, int], last_errors: Mapping[int, str]) -> None:
    """Add to rules' counts of decisions and errors, and store each rule's latest error. Arguments are by rule id."""
    rules = sorted(match_count.keys() | error_count.keys())
    values = {
        "rules": rules,
        "match_count": [match_count.get(rule, 0) for rule in rules],
        "error_count": [error_count.get(rule, 0) for rule in rules],
        "last_errors": [last_errors.get(rule, "") for rule in rules],
    }
    rows.execute(_COUNT, values)


def record_reasons(whys: Mapping[int, str]) -> None:
    """Store, as text for people, why a rule holds or delays lanes. `whys`: the reasons by lane id.

    Leased lanes are not changed.
    """
    rows.execute(_WHY, {"lanes": list(whys), "whys": list(whys.values())})


@dataclass(frozen=True, slots=True)
class Stopped:
    """A queued letter that is held or delayed by an outdated version of the rules."""

    letter_id: int
    lane_id: int
    dlq_id: int


def stopped_letters(*, version: int, above: int, limit: int = GROUP) -> list[Stopped]:
    """Return up to `limit` queued letters that are held or delayed by an outdated version of the rules, sorted by id.

    `version`: the current version of the rules. `above`: only letters with higher ids.
    """
    return rows.fetch(Stopped, _STOPPED, {"version": version, "above": above, "limit": limit})


def wake_for_new_rules(version: int, *, rules: bool) -> None:
    """Let changed rules decide about lanes that wait because their circuit breaker or target permits no send.

    Such lanes are not leased, so rules would not decide about their first letters. This function permits one lease.
    Lanes are left out if this rulebook `version` has decided about their first letter. `rules`: whether any rule is
    valid now. If not, lanes are also left out if rules have never decided about their first letter.
    """
    while rows.execute(_LOOK_AGAIN, {"version": version, "rules": rules, "limit": GROUP}):
        pass
