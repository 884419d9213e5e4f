"""What people are told: who redrives a DLQ, why attempts fail, and what a value or a command is of."""

from __future__ import annotations

from typing import Final

from tests.proof.planted.bug import Bug

_OUTLOOK: Final = "reprocessing/store/dlqs/automatic_redrive.py"
_OF_OUTLOOK: Final = "tests/reprocessing/commands/dlqs/test_automatic_redrive.py"
_OF_FAILURES: Final = "tests/reprocessing/commands/runs/test_why_attempts_fail.py"

BUGS: Final = (
    Bug(
        name="an-automatic-dlq-is-said-to-wait-for-a-command",
        breaks="What beat redrives by itself is said to wait for a drain, which then refuses it.",
        file=_OUTLOOK,
        old="    if dlq.mode == Mode.MANUAL:\n",
        new="    if dlq.mode:\n",
        caught_by=f"{_OF_OUTLOOK}::test_one_that_is_added_as_automatic_is_redriven_without_a_command",
    ),
    Bug(
        name="a-beat-that-never-ran-is-missed-by-nobody",
        breaks="An automatic DLQ stands still, and nobody says that neither beat nor a worker was ever started.",
        file=_OUTLOOK,
        old="    return age is None or age > _LATELY\n",
        new="    return age is not None and age > _LATELY\n",
        caught_by=f"{_OF_OUTLOOK}::test_who_was_not_seen_yet_is_named_and_how_to_start_it",
    ),
    Bug(
        name="every-attempt-is-read-to-say-why-some-fail",
        breaks="A status costs the same however many attempts there are.",
        file="reprocessing/store/safety/failed_answers.py",
        old='    return _most(rows.fetch(_Failed, _FAILED, {"dlq": dlq, "run": run, "depth": DEPTH})).get(dlq)\n',
        new='    return _most(rows.fetch(_Failed, _FAILED, {"dlq": dlq, "run": run, "depth": 2**31 - 1})).get(dlq)\n',
        caught_by=f"{_OF_FAILURES}::test_no_more_attempts_are_read_than_the_newest_of_each_breaker",
    ),
    Bug(
        name="one-reason-is-told-once-for-due-lanes-and-once-for-the-others",
        breaks="A drain says each reason once, with all the lanes that wait for it.",
        file="reprocessing/management/shared/drain_progress.py",
        old="            reasons[one.why] += one.n\n",
        new="            reasons[one.why] = one.n\n",
        caught_by=f"{_OF_FAILURES}::test_what_holds_lanes_back_is_told_once_due_or_not",
    ),
    Bug(
        name="a-dlq-and-its-source-queue-look-alike",
        breaks="Of two queues of one name it is said which is which.",
        file="reprocessing/management/output/findings_output.py",
        old='        yield f"  {one.label}.{one.field}: ',
        new='        yield f"  {one.name}.{one.field}: ',
        caught_by=(
            "tests/reprocessing/commands/dlqs/test_add_dlq.py"
            "::test_a_dlq_and_its_source_queue_of_one_name_are_told_apart_and_both_are_written_down"
        ),
    ),
    Bug(
        name="a-parked-message-looks-like-a-refused-release",
        breaks="A dry run of a release says why messages were parked, and not that it was refused.",
        file="reprocessing/management/shared/parking_command.py",
        old='            yield f"  {count:,} parked because: ',
        new='            yield f"  {count:,} {reason}: ',
        caught_by=(
            "tests/reprocessing/commands/parking_lot/test_release_parked.py"
            "::test_a_dry_run_shows_counts_and_examples_and_releases_nothing"
        ),
    ),
    Bug(
        name="a-listed-address-is-said-to-be-forbidden",
        breaks="Plain http to a listed address is allowed, and said to be.",
        file="reprocessing/pipeline/dlqs/examine/targets.py",
        old="    if not isinstance(found.host, str):\n",
        new="    if isinstance(found.host, bytes):\n",
        caught_by=(
            "tests/reprocessing/commands/targets/test_add_target.py"
            "::test_an_endpoint_without_tls_that_is_listed_is_said_to_be_allowed_and_by_what"
        ),
    ),
    Bug(
        name="a-start-that-is-refused-names-a-program-that-may-not-be-there",
        breaks="A hint runs when it is pasted: it begins as this process was invoked.",
        file="manage.py",
        old='        sys.exit(as_invoked(f"{error}"))\n',
        new='        sys.exit(f"{error}")\n',
        caught_by=(
            "tests/redrive_service/test_startup.py"
            "::test_what_can_be_tried_without_an_environment_is_named_as_this_process_was_invoked"
        ),
    ),
    Bug(
        name="the-demo-shows-commands-that-cannot-be-pasted",
        breaks="A hint runs when it is pasted: the demo's begin as the sandbox was invoked.",
        file="redrive_service/sandbox/management/commands/sandbox.py",
        old="            self.stderr.write(as_invoked(message))\n",
        new="            self.stderr.write(message)\n",
        caught_by="tests/sandbox/test_command.py::test_commands_are_shown_as_the_sandbox_was_invoked",
    ),
)
