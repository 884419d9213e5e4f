"""People are told, once, and of no secret."""

from __future__ import annotations

from typing import Final

from tests.proof.planted.bug import Bug

_SENDING: Final = "reprocessing/store/notifications/sending.py"
_FILING: Final = "reprocessing/store/notifications/notification_writer.py"
_OUTBOX: Final = "reprocessing/store/notifications/outbox.py"
_STORE: Final = "tests/reprocessing/store/notifications"
_ROUTES: Final = "reprocessing/store/notifications/routes.py"
_COMMANDS: Final = "tests/reprocessing/commands/notifications/test_notifications.py"
_DELIVER: Final = "tests/reprocessing/pipeline/notifications/test_deliver.py"

BUGS: Final = (
    Bug(
        name="destination-without-lease",
        breaks="Two workers send the same text: nobody looks whether another one sends to the destination.",
        file=_SENDING,
        old=" AND (r.leased_until IS NULL OR r.leased_until <= redrive_now())\n",
        new="",
        caught_by=f"{_DELIVER}::test_two_senders_at_the_same_time_never_take_the_same_destination",
    ),
    Bug(
        name="destination-without-fence",
        breaks="A sender that lost its destination says what came of it, over what the next one has written.",
        file=_SENDING,
        old=" WHERE id = %(route)b AND fence = %(fence)b\n",
        new=" WHERE id = %(route)b AND fence >= %(fence)b\n",
        caught_by=f"{_DELIVER}::test_two_senders_at_the_same_time_never_take_the_same_destination",
    ),
    Bug(
        name="a-text-marks-what-it-does-not-tell",
        breaks="No event is lost: a text marks all earlier notifications as sent, also those it has not read.",
        file=_SENDING,
        old="id = ANY(%(ids)b::bigint[])",
        new="id <= (SELECT max(told) FROM unnest(%(ids)b::bigint[]) told)",
        caught_by=f"{_DELIVER}::test_a_text_marks_what_it_tells_and_not_what_was_filed_before_it_and_committed_after",
    ),
    Bug(
        name="an-incident-ends-before-its-beginning",
        breaks="A clock that was set back stops nobody: a run cannot be resumed while its incident is open.",
        file=_OUTBOX,
        old="ended_at = greatest(k.now, i.opened_at)",
        new="ended_at = k.now",
        caught_by=f"{_STORE}/test_outbox.py"
        "::test_an_incident_does_not_end_before_its_beginning_when_the_clock_is_set_back",
    ),
    Bug(
        name="a-run-takes-less-than-no-time",
        breaks="A clock that was set back: a run is told to have taken -5 min.",
        file="reprocessing/store/notifications/run_events.py",
        old="max(round(run.seconds), 0)",
        new="round(run.seconds)",
        caught_by=f"{_STORE}/test_run_events.py::test_a_finished_run_took_no_time_when_the_clock_is_set_back",
    ),
    Bug(
        name="no-event-is-every-event",
        breaks="A destination gets the events that were named: an empty list replaces a few events by all of them.",
        file=_ROUTES,
        old="    if not wanted:\n",
        new="    if not wanted:\n        return ()\n    if not wanted:\n",
        caught_by=f"{_COMMANDS}::test_what_cannot_be_set_is_refused",
    ),
    Bug(
        name="all-and-some-events-are-some",
        breaks="A destination gets the events that were named: all beside another one is dropped without a word.",
        file=_ROUTES,
        old='    if "all" in wanted:\n',
        new='    wanted -= {"all"}\n    if "all" in wanted:\n',
        caught_by=f"{_COMMANDS}::test_what_cannot_be_set_is_refused",
    ),
    Bug(
        name="a-flapping-breaker-is-told-to-nobody",
        breaks="A person is told: a breaker opens for nine seconds again and again, and each time is a new incident.",
        file=_OUTBOX,
        old="    if new:\n",
        new="    if not new:\n",
        caught_by=f"{_STORE}/test_outbox.py"
        "::test_a_condition_that_flaps_for_over_10_seconds_is_notified_once_and_its_end_once",
    ),
    Bug(
        name="a-run-that-stops-again-is-told-to-nobody",
        breaks="A person is told: a run stops itself again after a person resumed it, and counts as the same incident.",
        file="reprocessing/domain/notifications/event.py",
        old="self not in _MOMENTS | _ENDED_BY_A_PERSON",
        new="self not in _MOMENTS",
        caught_by=f"{_STORE}/test_outbox.py::test_a_condition_that_cannot_flap_and_recurs_is_a_new_incident",
    ),
    Bug(
        name="long-enough-and-over-is-told-to-nobody",
        breaks="A person is told: a condition lasted, and was over when notifications were written.",
        file=_OUTBOX,
        old="                     WHEN i.due_at <= k.now THEN i.due_at END\n",
        new="                     END\n",
        caught_by=f"{_STORE}/test_outbox.py"
        "::test_a_condition_that_outlasted_its_settling_time_is_notified_though_it_ended",
    ),
    Bug(
        name="a-flapping-breaker-is-told-as-closed",
        breaks="A flapping breaker is told once: each time it closes for a second, people are told that it closed.",
        file=_OUTBOX,
        old="THEN k.now + make_interval(secs => %(resumes)b::float8) ELSE k.now END",
        new="THEN k.now ELSE k.now END",
        caught_by=f"{_STORE}/test_outbox.py"
        "::test_a_condition_that_flaps_for_over_10_seconds_is_notified_once_and_its_end_once",
    ),
    Bug(
        name="a-pager-waits-for-a-minute",
        breaks="An urgent event is sent ten seconds after the last text: it waits for a minute as others do.",
        file=_SENDING,
        old="AND i.ended_at IS NULL AND i.kind = ANY(%(urgent)b::text[])",
        new="AND i.ended_at IS NULL AND false AND i.kind = ANY(%(urgent)b::text[])",
        caught_by=f"{_DELIVER}::test_an_urgent_event_goes_ten_seconds_after_a_text_and_others_wait_for_a_minute",
    ),
    Bug(
        name="nothing-can-wait",
        breaks="One text a minute: every event is as urgent as a breaker that opened.",
        file=_SENDING,
        old="if kind.is_urgent],",
        new="if kind],",
        caught_by=f"{_DELIVER}::test_an_urgent_event_goes_ten_seconds_after_a_text_and_others_wait_for_a_minute",
    ),
    Bug(
        name="a-breaker-is-told-under-another-title",
        breaks="The title is the urgent event that is new: a reminder stands before it.",
        file="reprocessing/domain/notifications/text.py",
        old="_TONES.index(_tone(section)), _STAGES.index(section.stage)",
        new="_TONES.index(_tone(section)), -_STAGES.index(section.stage)",
        caught_by="tests/reprocessing/domain/notifications/test_text.py"
        "::test_what_is_urgent_and_new_is_the_title_before_what_is_urgent_and_what_can_wait",
    ),
    Bug(
        name="a-group-has-the-messages-that-it-had",
        breaks="A failure group is told with the messages that it has now: finished ones are counted, too.",
        file="reprocessing/store/notifications/group_events.py",
        old="        if counted.state in _UNFINISHED:\n",
        new="        if counted.state:\n",
        caught_by=f"{_STORE}/test_group_events.py::test_the_text_about_a_group_has_its_title_and_current_count",
    ),
    Bug(
        name="events-without-their-dlqs",
        breaks="A destination is told of another team's DLQ.",
        file=_FILING,
        old="WHERE m.notificationroute_id = r.id AND m.deadletterqueue_id = d.dlq_id",
        new="WHERE m.notificationroute_id = r.id",
        caught_by=f"{_DELIVER}::test_events_go_where_their_route_says",
    ),
    Bug(
        name="library-tells-its-url",
        breaks="No secret in a log or a page: what a library says when it fails holds the URL.",
        file="reprocessing/pipeline/notifications/send.py",
        old='return Failed(f"sending failed: {type(error).__name__}")',
        new='return Failed(f"sending failed: {error}")',
        caught_by=f"{_DELIVER}::test_what_a_library_says_when_it_fails_is_not_told",
    ),
    Bug(
        name="facts-of-anything",
        breaks="Never a payload in a notification: an event takes any fact.",
        file="reprocessing/domain/notifications/event.py",
        old="if unknown := self.facts.keys() - needed - useful:",
        new="if unknown := set[str]():",
        caught_by="tests/reprocessing/domain/notifications/test_event.py::test_a_fact_that_no_text_knows_is_refused",
    ),
)
