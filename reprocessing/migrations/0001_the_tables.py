import uuid

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState


class KeysAtOnce(migrations.RunSQL):
    """What Django puts off to a transaction's end is done now: else it records the migration after it has committed.

    Who is killed between the two has tables that no migration knows of.
    """

    def database_forwards(
        self,
        app_label: str,  # noqa: ARG002  # Django's own signature, also below
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,  # noqa: ARG002
        to_state: ProjectState,  # noqa: ARG002
    ) -> None:
        while schema_editor.deferred_sql:
            schema_editor.execute(schema_editor.deferred_sql.pop(0), None)


class Migration(migrations.Migration):
    initial = True
    # A database that had them all, from before they were one, has this.
    replaces = [
        ("reprocessing", "0001_the_pulse_of_a_queue"),
        ("reprocessing", "0002_the_letters_and_their_lanes"),
        ("reprocessing", "0004_indexes_that_only_cost"),
        ("reprocessing", "0005_bounds_that_the_pipeline_bears"),
        ("reprocessing", "0006_brakes_and_rules"),
        ("reprocessing", "0008_every_target_and_what_consumers_say"),
        ("reprocessing", "0010_workers_queues_keep_their_policy"),
        ("reprocessing", "0011_who_may_stop_everything"),
        ("reprocessing", "0012_what_people_decide_at_the_desk"),
        ("reprocessing", "0014_what_is_measured"),
        ("reprocessing", "0015_a_dlq_is_aws_s_or_ours"),
        ("reprocessing", "0016_after_a_restore"),
        ("reprocessing", "0017_what_the_planner_is_told"),
        ("reprocessing", "0019_few_of_many"),
        ("reprocessing", "0020_what_aws_moved_of_what_waits"),
        ("reprocessing", "0021_set_to_what_there_is"),
    ]

    dependencies = [("django_celery_beat", "0019_alter_periodictasks_options")]

    operations = [
        migrations.CreateModel(
            name="Dispatch",
            fields=[
                ("id", models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("width", models.IntegerField()),
                ("lifetime", models.FloatField()),
                ("swept_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("purged_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "db_table": "redrive_dispatch",
                "constraints": [models.CheckConstraint(condition=models.Q(("id", 1)), name="there_is_one_dispatch")],
            },
        ),
        migrations.CreateModel(
            name="Flow",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("dlq_id", models.BigIntegerField()),
                ("hour", models.DateTimeField()),
                ("what", models.TextField()),
                ("n", models.BigIntegerField()),
            ],
            options={
                "db_table": "redrive_flow",
                "abstract": False,
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("dlq_id", "hour", "what"), name="an_hour_is_counted_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="FlowDelta",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("dlq_id", models.BigIntegerField()),
                ("hour", models.DateTimeField()),
                ("what", models.TextField()),
                ("n", models.BigIntegerField()),
            ],
            options={"db_table": "redrive_flow_delta", "abstract": False, "default_permissions": ()},
        ),
        migrations.CreateModel(
            name="Halt",
            fields=[
                ("id", models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("since", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("by", models.TextField()),
                ("reason", models.TextField()),
                ("restored_to", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "db_table": "redrive_halt",
                "permissions": [("stop_sends", "Can stop all sends, and let them go on")],
                "default_permissions": ("view",),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("id", 1), ("restored_to", None)),
                            models.Q(("id", 2), ("restored_to__isnull", False)),
                            _connector="OR",
                        ),
                        name="there_is_one_halt",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("by", ""), _negated=True), models.Q(("reason", ""), _negated=True)
                        ),
                        name="a_halt_says_who_and_why",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Metric",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.TextField()),
                ("place", models.BigIntegerField()),
                ("part", models.TextField()),
                ("value", models.FloatField()),
                ("told", models.FloatField(db_default=0)),
            ],
            options={
                "db_table": "redrive_metric",
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("name", "place", "part"), name="a_metric_is_summed_once"),
                    models.CheckConstraint(condition=models.Q(("value__gte", 0)), name="a_sum_only_grows"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Operation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("token", models.UUIDField(default=uuid.uuid4, unique=True)),
                (
                    "act",
                    models.TextField(
                        choices=[
                            ("release", "replay"),
                            ("discard", "discard"),
                            ("restore", "restore to the parking lot"),
                            ("assign", "assign"),
                            ("note", "note"),
                        ]
                    ),
                ),
                ("filter", models.JSONField()),
                ("arguments", models.JSONField(default=dict)),
                ("by", models.TextField()),
                ("reason", models.TextField()),
                (
                    "state",
                    models.TextField(
                        choices=[
                            ("running", "running"),
                            ("done", "done"),
                            ("aborted", "aborted: what was done stays done"),
                        ],
                        db_default="running",
                    ),
                ),
                ("asked_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("upto", models.BigIntegerField()),
                ("cursor", models.BigIntegerField(db_default=0)),
                ("asked", models.IntegerField()),
                ("done", models.IntegerField(db_default=0)),
                ("left_alone", models.IntegerField(db_default=0)),
                ("refusals", models.JSONField(default=dict)),
                ("leased_until", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("ended_by", models.TextField(blank=True, db_default="")),
                ("why", models.TextField(blank=True, db_default="")),
            ],
            options={
                "db_table": "redrive_operation",
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(
                        models.F("id"), condition=models.Q(("state", "running")), name="operations_that_are_not_done"
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("by", ""), _negated=True), models.Q(("reason", ""), _negated=True)
                        ),
                        name="an_operation_says_who_and_why",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("finished_at", None), ("state", "running")),
                            models.Q(models.Q(("state", "running"), _negated=True), ("finished_at__isnull", False)),
                            _connector="OR",
                        ),
                        name="an_operation_ends_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "aborted"), _negated=True),
                            models.Q(models.Q(("ended_by", ""), _negated=True), models.Q(("why", ""), _negated=True)),
                            _connector="OR",
                        ),
                        name="an_aborted_operation_says_by_whom_and_why",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Pulse",
            fields=[
                ("queue", models.TextField(primary_key=True, serialize=False)),
                ("beaten_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("queue", ""), _negated=True), name="a_pulse_names_its_queue"
                    )
                ]
            },
        ),
        migrations.CreateModel(
            name="RateClass",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.SlugField(max_length=100, unique=True)),
                ("rate", models.FloatField(blank=True, null=True)),
                ("burst", models.FloatField(blank=True, null=True)),
                ("backoff_base", models.FloatField(blank=True, null=True)),
                ("backoff_cap", models.FloatField(blank=True, null=True)),
                (
                    "backoff_jitter",
                    models.TextField(
                        blank=True,
                        choices=[
                            ("full", "anywhere between nothing and the whole delay"),
                            ("none", "the whole delay, always"),
                        ],
                        null=True,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "rate classes",
                "db_table": "redrive_rate_class",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("rate", None), models.Q(("rate__gte", 0.001), ("rate__lte", 1000000)), _connector="OR"
                        ),
                        name="a_class_has_a_rate_of_a_thousandth_to_a_million_or_none",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("burst", None), models.Q(("burst__gte", 1), ("burst__lte", 1000000)), _connector="OR"
                        ),
                        name="a_class_bursts_one_to_a_million",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("backoff_base", None), ("backoff_cap", None), ("backoff_jitter", None)),
                            models.Q(
                                ("backoff_base__gte", 0),
                                ("backoff_base__isnull", False),
                                ("backoff_base__lte", 1209600),
                                ("backoff_cap__gte", 0),
                                ("backoff_cap__isnull", False),
                                ("backoff_cap__lte", 1209600),
                                ("backoff_jitter__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="a_class_has_a_whole_backoff_or_none",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Rulebook",
            fields=[
                ("id", models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("version", models.BigIntegerField(db_default=0)),
                ("changes_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "db_table": "redrive_rulebook",
                "constraints": [models.CheckConstraint(condition=models.Q(("id", 1)), name="there_is_one_rulebook")],
            },
        ),
        migrations.CreateModel(
            name="Tally",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("dlq_id", models.BigIntegerField()),
                ("group_id", models.BigIntegerField()),
                ("state", models.TextField()),
                ("reason", models.TextField()),
                ("presumed", models.BooleanField()),
                ("n", models.BigIntegerField()),
            ],
            options={
                "db_table": "redrive_tally",
                "abstract": False,
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("dlq_id", "group_id", "state", "reason", "presumed"),
                        name="a_kind_of_letter_is_tallied_once",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="TallyDelta",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("dlq_id", models.BigIntegerField()),
                ("group_id", models.BigIntegerField()),
                ("state", models.TextField()),
                ("reason", models.TextField()),
                ("presumed", models.BooleanField()),
                ("n", models.BigIntegerField()),
            ],
            options={"db_table": "redrive_tally_delta", "abstract": False, "default_permissions": ()},
        ),
        migrations.CreateModel(
            name="Tide",
            fields=[
                ("id", models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                (
                    "database",
                    models.UUIDField(
                        db_default=models.Func(function="gen_random_uuid", output_field=models.UUIDField())
                    ),
                ),
                ("ticks", models.BigIntegerField(db_default=0)),
            ],
            options={
                "db_table": "redrive_tide",
                "default_permissions": (),
                "constraints": [models.CheckConstraint(condition=models.Q(("id", 1)), name="there_is_one_tide")],
            },
        ),
        migrations.CreateModel(
            name="DeadLetterQueue",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.SlugField(max_length=100, unique=True)),
                ("url", models.TextField(unique=True)),
                ("arn", models.TextField(unique=True)),
                ("region", models.TextField()),
                ("role_arn", models.TextField(blank=True, default="")),
                ("fifo", models.BooleanField(default=False)),
                ("retention", models.IntegerField(default=345600)),
                (
                    "mode",
                    models.TextField(
                        choices=[
                            ("observe", "observe: its attributes are read, nothing is received"),
                            ("manual", "manual: captured and replayed when a person says so"),
                            ("automatic", "automatic: beat captures and replays it"),
                        ],
                        default="manual",
                    ),
                ),
                ("ordering_key", models.TextField(default="none")),
                ("sequence", models.TextField(default="system:SentTimestamp")),
                ("idempotency_key", models.TextField(default="message-id")),
                (
                    "missing_key",
                    models.TextField(
                        choices=[("park", "it is parked"), ("lane", "it gets a lane of its own")], default="park"
                    ),
                ),
                (
                    "delete_when",
                    models.TextField(
                        choices=[
                            ("terminal", "when its letter is finished"),
                            ("captured", "as soon as its snapshot is committed"),
                        ],
                        default="terminal",
                    ),
                ),
                ("max_attempts", models.PositiveIntegerField(default=3)),
                ("backoff_base", models.FloatField(default=60)),
                ("backoff_cap", models.FloatField(default=21600)),
                (
                    "backoff_jitter",
                    models.TextField(
                        choices=[
                            ("full", "anywhere between nothing and the whole delay"),
                            ("none", "the whole delay, always"),
                        ],
                        default="full",
                    ),
                ),
                ("quiet_for", models.FloatField(blank=True, null=True)),
                (
                    "parked_head",
                    models.TextField(
                        choices=[
                            ("aside", "it steps aside, the lane goes on"),
                            ("hold", "its lane waits for a person"),
                        ],
                        default="aside",
                    ),
                ),
                (
                    "stale",
                    models.TextField(
                        choices=[("park", "it is parked"), ("deliver", "it is delivered late")], default="park"
                    ),
                ),
                ("receive_ceiling", models.PositiveIntegerField(blank=True, null=True)),
                ("message_type", models.TextField(blank=True, default="")),
                ("tenant", models.TextField(blank=True, default="")),
                ("waves", models.BooleanField(default=True)),
                ("wave_success", models.FloatField(default=0.8)),
                ("open_fields", models.JSONField(blank=True, default=list)),
                ("custody_limit", models.PositiveIntegerField(default=20000)),
                ("parking_url", models.TextField(blank=True, default="")),
                (
                    "interval",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="django_celery_beat.intervalschedule",
                    ),
                ),
                (
                    "crontab",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="django_celery_beat.crontabschedule",
                    ),
                ),
                ("at_once", models.BooleanField(default=False)),
                ("stopped_at", models.DateTimeField(blank=True, null=True)),
                ("stopped_by", models.TextField(blank=True, default="")),
                ("stop_reason", models.TextField(blank=True, default="")),
                ("native_at", models.DateTimeField(blank=True, null=True)),
                ("native_by", models.TextField(blank=True, db_default="", default="")),
                ("native_reason", models.TextField(blank=True, db_default="", default="")),
                ("native_to", models.TextField(blank=True, db_default="", default="")),
                ("native_handle", models.TextField(blank=True, db_default="", default="")),
                ("native_after", models.DateTimeField(blank=True, null=True)),
                ("native_asked_at", models.DateTimeField(blank=True, null=True)),
                ("let_go_at", models.DateTimeField(blank=True, null=True)),
                ("next_poll_at", models.DateTimeField(blank=True, null=True)),
                ("leased_until", models.DateTimeField(blank=True, null=True)),
                ("fence", models.BigIntegerField(default=0)),
                ("unclean_until", models.DateTimeField(blank=True, null=True)),
                ("drained_through", models.DateTimeField(blank=True, null=True)),
                ("depth_visible", models.BigIntegerField(blank=True, null=True)),
                ("depth_in_flight", models.BigIntegerField(blank=True, null=True)),
                ("depth_at", models.DateTimeField(blank=True, null=True)),
                ("trouble", models.TextField(blank=True, default="")),
                ("added_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "verbose_name": "dead-letter queue",
                "db_table": "redrive_dlq",
                "permissions": [("stop_deadletterqueue", "Can stop a dlq's sends, and let them go on")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("max_attempts__gte", 1)), name="a_dlq_allows_one_attempt"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("backoff_jitter__in", ["full", "none"]),
                            ("delete_when__in", ["terminal", "captured"]),
                            ("missing_key__in", ["park", "lane"]),
                            ("mode__in", ["observe", "manual", "automatic"]),
                            ("parked_head__in", ["aside", "hold"]),
                            ("stale__in", ["park", "deliver"]),
                        ),
                        name="a_dlq_is_set_to_what_there_is",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("wave_success__gte", 0), ("wave_success__lte", 1)),
                        name="a_wave_succeeds_by_a_share",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("backoff_base__gte", 0),
                            ("backoff_base__lte", 1209600),
                            ("backoff_cap__gte", 0),
                            ("backoff_cap__lte", 1209600),
                        ),
                        name="a_backoff_lasts_a_fortnight_at_most",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("quiet_for", None),
                            models.Q(("quiet_for__gte", 0), ("quiet_for__lte", 1209600)),
                            _connector="OR",
                        ),
                        name="a_fresh_lane_rests_a_fortnight_at_most",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("interval", None), ("crontab", None), _connector="OR"),
                        name="a_dlq_has_one_schedule_at_most",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("fifo", True), _negated=True), ("delete_when", "captured"), _connector="OR"
                        ),
                        name="a_fifo_dlq_is_emptied_at_capture",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("stop_reason", ""), ("stopped_at", None), ("stopped_by", "")),
                            models.Q(
                                ("stopped_at__isnull", False),
                                models.Q(("stopped_by", ""), _negated=True),
                                models.Q(("stop_reason", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="a_stop_says_who_and_why",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("native_at", None),
                                ("native_by", ""),
                                ("native_handle", ""),
                                ("native_reason", ""),
                                ("native_to", ""),
                            ),
                            models.Q(
                                ("native_at__isnull", False),
                                models.Q(("native_by", ""), _negated=True),
                                models.Q(("native_reason", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="a_native_redrive_says_who_and_why",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("native_at", None), ("leased_until", None), _connector="OR"),
                        name="nobody_captures_what_aws_moves",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="LetterGroup",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "dlq",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="groups",
                        to="reprocessing.deadletterqueue",
                    ),
                ),
                ("fingerprint", models.BinaryField()),
                ("cause", models.TextField()),
                ("title", models.TextField()),
                (
                    "status",
                    models.TextField(
                        choices=[
                            ("open", "open: nobody has seen to it"),
                            ("acknowledged", "acknowledged: somebody sees to it"),
                            ("resolved", "resolved: it opens again when it recurs"),
                            ("ignored", "ignored: also when it recurs"),
                        ],
                        db_default="open",
                    ),
                ),
                ("note", models.TextField(blank=True, db_default="")),
                ("first_at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
                ("replayed_at", models.DateTimeField(blank=True, null=True)),
                ("settled_at", models.DateTimeField(blank=True, null=True)),
                ("settled_by", models.TextField(blank=True, db_default="")),
            ],
            options={
                "verbose_name": "group",
                "db_table": "redrive_group",
                "default_permissions": ("view", "change"),
                "indexes": [
                    models.Index(
                        models.OrderBy(models.F("last_at"), descending=True),
                        models.OrderBy(models.F("id"), descending=True),
                        name="groups_by_their_last_death",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("dlq", "fingerprint"), name="a_cause_has_one_group_a_dlq"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("status", "open"),
                            models.Q(("settled_at__isnull", False), models.Q(("settled_by", ""), _negated=True)),
                            _connector="OR",
                        ),
                        name="a_settled_group_says_since_when_and_by_whom",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("first_at__lte", models.F("last_at"))), name="a_group_begins_before_it_ends"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Run",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.SlugField(max_length=100, unique=True)),
                (
                    "dlq",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="runs",
                        to="reprocessing.deadletterqueue",
                    ),
                ),
                (
                    "kind",
                    models.TextField(
                        choices=[
                            ("standing", "standing: beat feeds it whatever the dlq holds"),
                            ("drain", "drain: a person selected its letters"),
                        ],
                        default="drain",
                    ),
                ),
                (
                    "state",
                    models.TextField(
                        choices=[
                            ("planned", "planned"),
                            ("running", "running"),
                            ("paused", "paused: it goes on when somebody says so"),
                            ("aborted", "aborted: what it left waits for another run"),
                            ("finished", "finished"),
                        ],
                        default="planned",
                    ),
                ),
                ("selection", models.JSONField(default=dict)),
                ("asked_by", models.TextField(default="")),
                ("reason", models.TextField(blank=True, default="")),
                ("waves", models.BooleanField(db_default=False)),
                ("selected", models.IntegerField(blank=True, null=True)),
                ("behind", models.IntegerField(blank=True, null=True)),
                ("stopped_by", models.TextField(blank=True, db_default="")),
                ("why", models.TextField(blank=True, db_default="")),
                ("changed_at", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "db_table": "redrive_run",
                "default_permissions": ("view", "operate"),
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("kind", "standing")), fields=("dlq",), name="a_dlq_has_one_standing_run"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state__in", ["finished", "aborted"]), _negated=True),
                            ("kind", "drain"),
                            _connector="OR",
                        ),
                        name="a_standing_run_never_ends",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state__in", ["paused", "aborted"]), _negated=True),
                            models.Q(models.Q(("why", ""), _negated=True), models.Q(("stopped_by", ""), _negated=True)),
                            _connector="OR",
                        ),
                        name="a_run_that_stands_says_who_and_why",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Target",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.TextField(
                        choices=[
                            ("sqs", "SQS queue"),
                            ("celery", "SQS queue of Celery workers"),
                            ("http", "HTTP endpoint"),
                            ("lambda", "Lambda function"),
                            ("topic", "SNS topic: every subscriber gets it again"),
                            ("bus", "EventBridge bus: every rule sees it again"),
                        ],
                        default="sqs",
                    ),
                ),
                ("arn", models.TextField(unique=True)),
                ("url", models.TextField()),
                ("region", models.TextField()),
                ("fifo", models.BooleanField(default=False)),
                (
                    "proof",
                    models.TextField(
                        choices=[
                            ("accepted", "accepted: the target took it"),
                            ("absence", "absence: it has not come back, with evidence (presumed)"),
                            ("acknowledged", "acknowledged: its consumer says so"),
                        ],
                        default="accepted",
                    ),
                ),
                (
                    "advance",
                    models.TextField(
                        choices=[
                            ("accepted", "as soon as the target took the one before"),
                            ("settled", "when the outcome of the one before is known"),
                        ],
                        default="accepted",
                    ),
                ),
                ("rate", models.FloatField(blank=True, null=True)),
                ("burst", models.FloatField(blank=True, null=True)),
                ("window", models.FloatField(default=0)),
                ("visibility", models.IntegerField(default=30)),
                ("size_limit", models.IntegerField(default=1048576)),
                (
                    "watched_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="watched_targets",
                        to="reprocessing.deadletterqueue",
                    ),
                ),
                ("role_arn", models.TextField(blank=True, default="")),
                ("timeout", models.FloatField(default=30)),
                ("answers", models.TextField(blank=True, default="")),
                ("content_type", models.TextField(blank=True, default="")),
                ("secret", models.TextField(blank=True, default="")),
                ("strips_eta", models.BooleanField(default=False)),
                ("strips_expires", models.BooleanField(default=False)),
                ("resets_retries", models.BooleanField(default=False)),
                ("renews_id", models.BooleanField(default=False)),
                ("refires", models.IntegerField(blank=True, null=True)),
            ],
            options={
                "db_table": "redrive_target",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("advance__in", ["accepted", "settled"]),
                            ("kind__in", ["sqs", "celery", "http", "lambda", "topic", "bus"]),
                            ("proof__in", ["accepted", "absence", "acknowledged"]),
                        ),
                        name="a_target_is_set_to_what_there_is",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("rate", None), models.Q(("rate__gte", 0.001), ("rate__lte", 1000000)), _connector="OR"
                        ),
                        name="a_rate_is_a_thousandth_to_a_million_or_none",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("burst", None), models.Q(("burst__gte", 1), ("burst__lte", 1000000)), _connector="OR"
                        ),
                        name="a_burst_is_one_to_a_million",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("window__gte", 0), ("window__lte", 1209600)),
                        name="a_window_lasts_a_fortnight_at_most",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("proof", "absence"), _negated=True),
                            ("watched_by__isnull", False),
                            _connector="OR",
                        ),
                        name="absence_needs_a_watched_dlq",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("timeout__gt", 0), ("timeout__lte", 900)),
                        name="an_answer_takes_a_quarter_of_an_hour_at_most",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("kind__in", ["topic", "bus"]), _negated=True),
                            models.Q(("refires__gte", 0), ("refires__isnull", False)),
                            _connector="OR",
                        ),
                        name="publishing_again_is_agreed_to",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Breaker",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "target",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="breakers",
                        to="reprocessing.target",
                    ),
                ),
                (
                    "rate_class",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="breakers",
                        to="reprocessing.rateclass",
                    ),
                ),
                ("threshold", models.IntegerField(db_default=5)),
                ("ratio", models.FloatField(db_default=0.5)),
                ("at_least", models.IntegerField(db_default=20)),
                ("cooldown", models.FloatField(db_default=30.0)),
                ("cooldown_cap", models.FloatField(db_default=600.0)),
                ("closes_after", models.IntegerField(db_default=3)),
                ("ramp_from", models.FloatField(db_default=0.1)),
                ("ramp_every", models.FloatField(db_default=10.0)),
                (
                    "state",
                    models.TextField(
                        choices=[
                            ("closed", "closed: letters go"),
                            ("open", "open: nothing goes until its cooldown is over"),
                            ("half_open", "half open: one canary at a time"),
                        ],
                        db_default="closed",
                    ),
                ),
                ("since", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("why", models.TextField(blank=True, db_default="")),
                ("epoch", models.BigIntegerField(db_default=0)),
                ("rest", models.FloatField(db_default=0.0)),
                ("retry_at", models.DateTimeField(blank=True, null=True)),
                ("canary_until", models.DateTimeField(blank=True, null=True)),
                ("successes", models.IntegerField(db_default=0)),
                ("ramp", models.FloatField(db_default=0.1)),
                ("ramp_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("ramp_why", models.TextField(blank=True, db_default="")),
                ("ramp_ill", models.FloatField(db_default=0.0)),
            ],
            options={
                "db_table": "redrive_breaker",
                "permissions": [("reset_breaker", "Can open, close and half-open breakers by hand")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("target", "rate_class"), name="a_class_has_one_breaker_a_target", nulls_distinct=False
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("at_least__gte", 1),
                            ("closes_after__gte", 1),
                            ("ratio__gt", 0),
                            ("ratio__lte", 1),
                            ("threshold__gte", 1),
                        ),
                        name="a_breaker_can_open_and_close",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("cooldown__gt", 0),
                            ("cooldown_cap__gte", models.F("cooldown")),
                            ("cooldown_cap__lte", 1209600),
                        ),
                        name="a_breaker_rests_between_its_cooldown_and_its_cap",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("ramp__gt", 0),
                            ("ramp__lte", 1),
                            ("ramp_every__gt", 0),
                            ("ramp_every__lte", 1209600),
                            ("ramp_from__gt", 0),
                            ("ramp_from__lte", 1),
                        ),
                        name="a_ramp_is_a_share_of_the_rate",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("retry_at__isnull", False), ("state", "open")),
                            models.Q(models.Q(("state", "open"), _negated=True), ("retry_at", None)),
                            _connector="OR",
                        ),
                        name="an_open_breaker_says_until_when",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("canary_until", None), ("state", "half_open"), _connector="OR"),
                        name="only_a_half_open_breaker_has_a_canary",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="HealthCheck",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "target",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="checks",
                        to="reprocessing.target",
                    ),
                ),
                (
                    "kind",
                    models.TextField(
                        choices=[
                            ("http", "http: an address answers as expected"),
                            ("alarm", "alarm: a CloudWatch alarm is in OK"),
                            ("depth", "depth: the target queue holds at most so many messages"),
                            ("age", "age: the target queue's oldest message is at most so many seconds old"),
                            ("policy", "policy: the target queue has a redrive policy"),
                        ]
                    ),
                ),
                ("subject", models.TextField(blank=True, default="")),
                ("ceiling", models.FloatField(blank=True, null=True)),
                ("expected_status", models.IntegerField(blank=True, null=True)),
                ("every", models.FloatField(db_default=10.0)),
                ("max_age", models.FloatField(db_default=30.0)),
                (
                    "verdict",
                    models.TextField(
                        choices=[("unknown", "unknown"), ("healthy", "healthy"), ("unhealthy", "unhealthy")],
                        db_default="unknown",
                    ),
                ),
                ("detail", models.TextField(blank=True, db_default="")),
                ("checked_at", models.DateTimeField(blank=True, null=True)),
                ("next_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "db_table": "redrive_health_check",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("target", "kind", "subject"), name="a_target_is_asked_one_thing_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("ceiling", None),
                                ("kind__in", ["http", "alarm"]),
                                models.Q(("subject", ""), _negated=True),
                            ),
                            models.Q(
                                ("ceiling__gte", 0),
                                ("ceiling__isnull", False),
                                ("kind__in", ["depth", "age"]),
                                ("subject", ""),
                            ),
                            models.Q(("ceiling", None), ("kind", "policy"), ("subject", "")),
                            _connector="OR",
                        ),
                        name="a_check_says_what_it_asks",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("every__gt", 0), ("max_age__gte", models.F("every")), ("max_age__lte", 1209600)
                        ),
                        name="a_check_is_repeated_before_it_is_stale",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("verdict", "healthy"), _negated=True),
                            ("checked_at__isnull", False),
                            _connector="OR",
                        ),
                        name="nothing_is_healthy_unseen",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Origin",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "dlq",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="origins",
                        to="reprocessing.deadletterqueue",
                    ),
                ),
                ("arn", models.TextField()),
                (
                    "target",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="origins", to="reprocessing.target"
                    ),
                ),
            ],
            options={
                "db_table": "redrive_origin",
                "constraints": [models.UniqueConstraint(fields=("dlq", "arn"), name="an_origin_is_named_once_a_dlq")],
            },
        ),
        migrations.AddField(
            model_name="deadletterqueue",
            name="default_origin",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="default_of",
                to="reprocessing.origin",
            ),
        ),
        migrations.CreateModel(
            name="Reporter",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.SlugField(max_length=100, unique=True)),
                ("token_hash", models.BinaryField(unique=True)),
                ("added_by", models.TextField()),
                ("added_at", models.DateTimeField(auto_now_add=True)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                (
                    "targets",
                    models.ManyToManyField(
                        db_table="redrive_reporter_target", related_name="reporters", to="reprocessing.target"
                    ),
                ),
            ],
            options={"db_table": "redrive_reporter"},
        ),
        migrations.CreateModel(
            name="Rule",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.SlugField(max_length=100, unique=True)),
                ("position", models.IntegerField(db_default=100)),
                ("enabled", models.BooleanField(db_default=False)),
                (
                    "dlq",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="rules",
                        to="reprocessing.deadletterqueue",
                    ),
                ),
                ("conditions", models.JSONField(default=list)),
                (
                    "action",
                    models.TextField(
                        choices=[
                            ("replay", "replay"),
                            ("delay", "delay"),
                            ("divert", "divert"),
                            ("quarantine", "quarantine"),
                            ("discard", "discard"),
                            ("hold", "hold"),
                        ]
                    ),
                ),
                ("delay", models.FloatField(blank=True, null=True)),
                (
                    "target",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="rules",
                        to="reprocessing.target",
                    ),
                ),
                (
                    "rate_class",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="rules",
                        to="reprocessing.rateclass",
                    ),
                ),
                ("backoff_base", models.FloatField(blank=True, null=True)),
                ("backoff_cap", models.FloatField(blank=True, null=True)),
                (
                    "backoff_jitter",
                    models.TextField(
                        blank=True,
                        choices=[
                            ("full", "anywhere between nothing and the whole delay"),
                            ("none", "the whole delay, always"),
                        ],
                        null=True,
                    ),
                ),
                ("valid_from", models.DateTimeField(blank=True, null=True)),
                ("valid_until", models.DateTimeField(blank=True, null=True)),
                ("hits", models.BigIntegerField(db_default=0)),
                ("errs", models.BigIntegerField(db_default=0)),
                ("last_hit_at", models.DateTimeField(blank=True, null=True)),
                ("trouble", models.TextField(blank=True, db_default="")),
                ("made_by", models.TextField()),
                ("made_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "db_table": "redrive_rule",
                "indexes": [models.Index(models.F("position"), models.F("id"), name="rules_in_their_order")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("action", "delay"), ("delay__gt", 0), ("delay__isnull", False), ("delay__lte", 1209600)
                            ),
                            models.Q(models.Q(("action", "delay"), _negated=True), ("delay", None)),
                            _connector="OR",
                        ),
                        name="a_delay_says_how_long",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("action", "divert"), _negated=True), ("target__isnull", False), _connector="OR"
                        ),
                        name="a_diversion_says_where_to",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("target", None), ("action__in", ["replay", "divert"]), _connector="OR"),
                        name="only_replay_and_divert_have_a_target",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("valid_from", None),
                            ("valid_until", None),
                            ("valid_until__gt", models.F("valid_from")),
                            _connector="OR",
                        ),
                        name="a_rule_ends_after_it_begins",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("backoff_base", None), ("backoff_cap", None), ("backoff_jitter", None)),
                            models.Q(
                                ("backoff_base__gte", 0),
                                ("backoff_base__isnull", False),
                                ("backoff_base__lte", 1209600),
                                ("backoff_cap__gte", 0),
                                ("backoff_cap__isnull", False),
                                ("backoff_cap__lte", 1209600),
                                ("backoff_jitter__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="a_rule_has_a_whole_backoff_or_none",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("made_by", ""), _negated=True), name="a_rule_says_who_made_it"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Sighting",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "target",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="sightings", to="reprocessing.target"
                    ),
                ),
                ("seen_at", models.DateTimeField()),
                ("took", models.FloatField(db_default=0.0)),
            ],
            options={
                "db_table": "redrive_sighting",
                "indexes": [
                    models.Index(
                        models.F("target"),
                        models.OrderBy(models.F("seen_at"), descending=True),
                        name="sightings_newest_first",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Wave",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="wave_history",
                        to="reprocessing.run",
                    ),
                ),
                ("no", models.IntegerField()),
                ("size", models.IntegerField(blank=True, null=True)),
                ("opened_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("settled_at", models.DateTimeField(blank=True, null=True)),
                ("touched", models.IntegerField(blank=True, null=True)),
                ("failed", models.IntegerField(blank=True, null=True)),
            ],
            options={
                "db_table": "redrive_wave",
                "constraints": [
                    models.UniqueConstraint(fields=("run", "no"), name="a_wave_has_one_number"),
                    models.UniqueConstraint(
                        condition=models.Q(("settled_at", None)), fields=("run",), name="a_run_has_one_open_wave"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("size", None), ("size__gte", 1), _connector="OR"), name="a_wave_has_letters"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("failed", None), ("settled_at", None), ("touched", None)),
                            models.Q(
                                ("failed__gte", 0),
                                ("failed__isnull", False),
                                ("settled_at__isnull", False),
                                ("touched__gte", models.F("failed")),
                                ("touched__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="a_settled_wave_says_how_it_went",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Lane",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "dlq",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="lanes",
                        to="reprocessing.deadletterqueue",
                    ),
                ),
                (
                    "origin",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="lanes",
                        to="reprocessing.origin",
                    ),
                ),
                ("key_hash", models.BinaryField()),
                ("key", models.TextField(blank=True, null=True)),
                ("single", models.BooleanField(db_default=False)),
                (
                    "run",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="reprocessing.run",
                    ),
                ),
                (
                    "phase",
                    models.TextField(
                        choices=[
                            ("idle", "idle"),
                            ("ready", "ready"),
                            ("leased", "leased"),
                            ("awaiting", "awaiting"),
                            ("held", "held"),
                        ],
                        db_default="idle",
                    ),
                ),
                ("due_at", models.DateTimeField(blank=True, null=True)),
                ("fence", models.BigIntegerField(db_default=0)),
                ("owner", models.TextField(blank=True, db_default="")),
                ("passed_sequence", models.TextField(blank=True, db_collation="C", null=True)),
                ("hinted_until", models.DateTimeField(blank=True, null=True)),
                ("why", models.TextField(blank=True, db_default="")),
                (
                    "breaker",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="reprocessing.breaker",
                    ),
                ),
                ("stopped_at", models.DateTimeField(blank=True, null=True)),
                ("stopped_by", models.TextField(blank=True, db_default="")),
                ("stop_reason", models.TextField(blank=True, db_default="")),
            ],
            options={
                "db_table": "redrive_lane",
                "permissions": [("stop_lane", "Can stop lanes, and let them go on")],
                "indexes": [
                    models.Index(
                        models.F("run"),
                        models.F("due_at"),
                        condition=models.Q(("due_at__isnull", False)),
                        name="lanes_that_come_due",
                    ),
                    models.Index(
                        models.F("breaker"),
                        models.F("run"),
                        models.F("due_at"),
                        condition=models.Q(("breaker__isnull", False), ("phase", "ready")),
                        name="lanes_behind_a_breaker",
                    ),
                    models.Index(models.F("dlq"), condition=models.Q(("phase", "held")), name="lanes_that_are_held"),
                    models.Index(
                        models.F("due_at"), condition=models.Q(("phase", "leased")), name="lanes_that_are_leased"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("dlq", "origin", "key_hash"), name="a_key_has_one_lane"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("due_at__isnull", False), ("phase__in", ["ready", "leased"])),
                            models.Q(models.Q(("phase__in", ["ready", "leased"]), _negated=True), ("due_at", None)),
                            _connector="OR",
                        ),
                        name="a_lane_is_due_when_ready_or_leased",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("stop_reason", ""), ("stopped_at", None), ("stopped_by", "")),
                            models.Q(
                                ("stopped_at__isnull", False),
                                models.Q(("stopped_by", ""), _negated=True),
                                models.Q(("stop_reason", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="a_stopped_lane_says_by_whom_and_why",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Report",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "reporter",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reports",
                        to="reprocessing.reporter",
                    ),
                ),
                ("message_id", models.TextField(blank=True, null=True)),
                ("public_id", models.UUIDField(blank=True, null=True)),
                ("attempt_no", models.IntegerField(blank=True, null=True)),
                (
                    "verdict",
                    models.TextField(
                        choices=[
                            ("delivered", "delivered: it worked"),
                            ("failed", "failed: it did not, and its consumer will not try again"),
                            ("retrying", "retrying: a try failed, and its queue hands it out again"),
                        ]
                    ),
                ),
                ("type", models.TextField(blank=True, default="")),
                ("message", models.TextField(blank=True, default="")),
                ("fingerprint", models.TextField(blank=True, default="")),
                ("happened_at", models.DateTimeField()),
                ("received_at", models.DateTimeField()),
                ("digest", models.BinaryField(unique=True)),
            ],
            options={
                "db_table": "redrive_report",
                "indexes": [
                    models.Index(
                        models.F("message_id"),
                        condition=models.Q(("message_id__isnull", False)),
                        name="reports_by_message",
                    ),
                    models.Index(
                        models.F("public_id"),
                        condition=models.Q(("public_id__isnull", False)),
                        name="reports_by_letter",
                    ),
                    models.Index(models.F("received_at"), name="reports_by_age"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("message_id__isnull", False), ("public_id__isnull", False), _connector="OR"
                        ),
                        name="a_report_names_a_message",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("attempt_no", None), ("public_id__isnull", False), _connector="OR"),
                        name="an_attempt_is_one_of_a_letter",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="DeadLetter",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("public_id", models.UUIDField(default=uuid.uuid4, unique=True)),
                (
                    "dlq",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="letters",
                        to="reprocessing.deadletterqueue",
                    ),
                ),
                ("message_id", models.TextField()),
                (
                    "origin",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="reprocessing.origin",
                    ),
                ),
                (
                    "target",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="reprocessing.target",
                    ),
                ),
                (
                    "lane",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="letters",
                        to="reprocessing.lane",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="letters",
                        to="reprocessing.run",
                    ),
                ),
                (
                    "state",
                    models.TextField(
                        choices=[
                            ("captured", "captured"),
                            ("waiting", "waiting"),
                            ("sending", "sending"),
                            ("awaiting", "awaiting"),
                            ("delivered", "delivered"),
                            ("parked", "parked"),
                            ("duplicate", "duplicate"),
                            ("discarded", "discarded"),
                        ],
                        db_default="captured",
                    ),
                ),
                ("due_at", models.DateTimeField(blank=True, null=True)),
                ("attempts", models.IntegerField(db_default=0)),
                ("not_sent", models.IntegerField(db_default=0)),
                ("earlier", models.IntegerField(db_default=0)),
                ("forgiven", models.IntegerField(db_default=0)),
                ("epoch", models.IntegerField(db_default=0)),
                ("planned", models.BooleanField(db_default=False)),
                ("objection", models.TextField(blank=True, db_default="")),
                ("ordering_key", models.TextField(blank=True, null=True)),
                ("key_hash", models.BinaryField(blank=True, null=True)),
                ("single", models.BooleanField(db_default=True)),
                ("sequence", models.TextField(blank=True, db_collation="C", null=True)),
                ("idempotency_key", models.TextField(blank=True, null=True)),
                ("body_hash", models.BinaryField()),
                ("size", models.IntegerField()),
                ("lets_pass", models.BooleanField(db_default=False)),
                ("presumed", models.BooleanField(db_default=False)),
                (
                    "rule",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="letters",
                        to="reprocessing.rule",
                    ),
                ),
                (
                    "route",
                    models.TextField(
                        blank=True,
                        choices=[
                            ("replay", "replay"),
                            ("delay", "delay"),
                            ("divert", "divert"),
                            ("quarantine", "quarantine"),
                            ("discard", "discard"),
                            ("hold", "hold"),
                            ("erred", "erred: the rule could not be asked of it"),
                        ],
                        db_default="",
                    ),
                ),
                ("route_version", models.BigIntegerField(db_default=0)),
                (
                    "rate_class",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="reprocessing.rateclass",
                    ),
                ),
                (
                    "reason",
                    models.TextField(
                        blank=True,
                        choices=[
                            ("attempts_spent", "Every attempt the dlq allows has failed."),
                            ("refused", "The target refused it in a way that another attempt would not change."),
                            ("too_large", "It is larger than the target takes."),
                            ("unsendable", "The target's rules forbid its body or its attributes."),
                            (
                                "no_ordering_key",
                                "It lacks the ordering key that the dlq names, so its place is not known.",
                            ),
                            (
                                "no_sequence",
                                "It lacks the sequence that the dlq names, so its place in its lane is not known.",
                            ),
                            ("no_idempotency_key", "It lacks the idempotency key that the dlq names."),
                            (
                                "unreadable_body",
                                "A key is to be read from its body, and its body is not JSON that can be read.",
                            ),
                            ("unknown_origin", "The queue it died in is not known, and the dlq names no other."),
                            ("stale", "A later letter of its lane was delivered before this one turned up."),
                            ("key_conflict", "Another body was delivered under the same idempotency key."),
                            ("twin_discarded", "A person discarded another letter with the same idempotency key."),
                            ("possible_return", "It may be a letter of ours that came back without its marks."),
                            ("received_too_often", "It was received more often than the dlq's ceiling allows."),
                            ("quarantined", "A rule quarantined it."),
                            ("no_answer", "Its consumer was to say what became of it, and has not."),
                            ("expired", "It is a task message that has expired: a worker would throw it away."),
                            (
                                "waits_for_a_word",
                                "It is part of a group or a chord of tasks, which another part may have ended.",
                            ),
                            ("unreadable_task", "It goes to Celery workers, and is no task message that can be read."),
                            (
                                "unsupported_target",
                                "What failed to take it is of a kind that cannot be reached from here.",
                            ),
                            (
                                "moved_by_aws",
                                "AWS was told to move its message out of the dlq, and it has not come back since.",
                            ),
                            (
                                "in_doubt",
                                "PostgreSQL was restored from a backup, and whether it was sent since is not known.",
                            ),
                        ],
                        db_default="",
                    ),
                ),
                ("detail", models.TextField(blank=True, db_default="")),
                ("released_by", models.TextField(blank=True, null=True)),
                (
                    "duplicate_of",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="duplicates",
                        to="reprocessing.deadletter",
                    ),
                ),
                ("died_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("captured_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "group",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="letters",
                        to="reprocessing.lettergroup",
                    ),
                ),
                ("sorted_at", models.DateTimeField(blank=True, null=True)),
                ("assigned_to", models.TextField(blank=True, db_default="")),
            ],
            options={
                "db_table": "redrive_letter",
                "permissions": [("export_deadletter", "Can export letters")],
                "indexes": [
                    models.Index(
                        models.F("lane"),
                        models.F("sequence"),
                        models.F("message_id"),
                        condition=models.Q(("lets_pass", False), ("state__in", ["waiting", "sending", "awaiting"])),
                        name="letters_in_the_order_of_a_lane",
                    ),
                    models.Index(
                        models.F("dlq"),
                        models.F("id"),
                        condition=models.Q(("state", "captured")),
                        name="letters_nobody_asked_for",
                    ),
                    models.Index(
                        models.F("run"),
                        models.F("state"),
                        condition=models.Q(("run__isnull", False)),
                        name="letters_of_a_run",
                    ),
                    models.Index(
                        models.F("dlq"),
                        models.F("finished_at"),
                        models.F("id"),
                        condition=models.Q(("state", "parked")),
                        name="letters_in_the_parking_lot",
                    ),
                    models.Index(
                        models.F("finished_at"),
                        models.F("id"),
                        condition=models.Q(("state", "parked")),
                        name="letters_in_any_parking_lot",
                    ),
                    models.Index(
                        models.F("assigned_to"),
                        models.F("finished_at"),
                        models.F("id"),
                        condition=models.Q(("state", "parked"), models.Q(("assigned_to", ""), _negated=True)),
                        name="letters_that_somebody_sees_to",
                    ),
                    models.Index(
                        models.F("dlq"),
                        models.F("state"),
                        models.F("died_at"),
                        condition=models.Q(("finished_at", None), ("state", "parked"), _connector="OR"),
                        name="letters_by_their_death",
                    ),
                    models.Index(
                        models.F("dlq"),
                        models.F("expires_at"),
                        condition=models.Q(("finished_at", None)),
                        name="letters_by_their_expiry",
                    ),
                    models.Index(
                        models.F("dlq"),
                        models.F("state"),
                        models.F("id"),
                        condition=models.Q(("state__in", ["discarded", "duplicate"])),
                        name="letters_that_were_let_go",
                    ),
                    models.Index(
                        models.F("id"),
                        condition=models.Q(
                            ("planned", True),
                            ("state__in", ["captured", "waiting", "parked"]),
                            models.Q(("sorted_at", None), ("sorted_at__lt", models.F("finished_at")), _connector="OR"),
                        ),
                        name="letters_to_be_sorted",
                    ),
                    models.Index(
                        models.F("group"),
                        models.F("id"),
                        condition=models.Q(("group__isnull", False)),
                        name="letters_of_a_group",
                    ),
                    models.Index(
                        models.F("lane"), condition=models.Q(("state", "parked")), name="letters_parked_beside_a_lane"
                    ),
                    models.Index(
                        models.F("rule"),
                        models.F("state"),
                        condition=models.Q(("rule__isnull", False)),
                        name="letters_that_a_rule_decided",
                    ),
                    models.Index(
                        models.F("dlq"),
                        models.F("body_hash"),
                        condition=models.Q(("objection", "moved_by_aws"), ("reason", "moved_by_aws"), _connector="OR"),
                        name="letters_that_aws_moved",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("dlq", "message_id"), name="a_message_is_one_letter"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state__in", ["waiting", "sending", "awaiting"]), _negated=True),
                            models.Q(
                                ("lane__isnull", False),
                                ("planned", True),
                                ("sequence__isnull", False),
                                ("target__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="a_letter_under_way_has_lane_target_and_sequence",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "parked"), models.Q(("reason", ""), _negated=True)),
                            models.Q(models.Q(("state", "parked"), _negated=True), ("reason", "")),
                            _connector="OR",
                        ),
                        name="a_parked_letter_says_why",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("duplicate_of__isnull", False), ("state", "duplicate")),
                            models.Q(models.Q(("state", "duplicate"), _negated=True), ("duplicate_of", None)),
                            _connector="OR",
                        ),
                        name="a_duplicate_names_the_letter_that_was_delivered",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("finished_at__isnull", False),
                                ("state__in", ["delivered", "parked", "duplicate", "discarded"]),
                            ),
                            models.Q(
                                models.Q(
                                    ("state__in", ["delivered", "parked", "duplicate", "discarded"]), _negated=True
                                ),
                                ("finished_at", None),
                            ),
                            _connector="OR",
                        ),
                        name="a_finished_letter_says_since_when",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("lets_pass", False), ("state", "awaiting"), _connector="OR"),
                        name="only_a_sent_letter_lets_pass",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("attempts__gte", 0), ("not_sent__gte", 0)),
                        name="attempts_are_counted_upwards",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Attempt",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "letter",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="history",
                        to="reprocessing.deadletter",
                    ),
                ),
                (
                    "lane",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="reprocessing.lane"
                    ),
                ),
                (
                    "target",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="reprocessing.target",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="attempts",
                        to="reprocessing.run",
                    ),
                ),
                ("no", models.IntegerField()),
                ("epoch", models.IntegerField()),
                ("fence", models.BigIntegerField()),
                ("opened_at", models.DateTimeField()),
                ("taken_at", models.DateTimeField(blank=True, null=True)),
                ("deadline", models.DateTimeField(blank=True, null=True)),
                ("sent_message_id", models.TextField(blank=True, null=True)),
                (
                    "outcome",
                    models.TextField(
                        blank=True,
                        choices=[
                            ("accepted", "accepted"),
                            ("absent", "absent"),
                            ("returned", "returned"),
                            ("refused", "refused"),
                            ("not_sent", "not_sent"),
                            ("unknown", "unknown"),
                            ("acknowledged", "acknowledged"),
                            ("failed", "failed"),
                            ("silent", "silent"),
                        ],
                        null=True,
                    ),
                ),
                ("detail", models.TextField(blank=True, null=True)),
                ("closed_at", models.DateTimeField(blank=True, null=True)),
                ("returned_at", models.DateTimeField(blank=True, null=True)),
                ("holds_lane", models.BooleanField()),
                (
                    "breaker",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="reprocessing.breaker",
                    ),
                ),
                ("breaker_epoch", models.BigIntegerField(db_default=0)),
                (
                    "wave",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="reprocessing.wave",
                    ),
                ),
                ("ill", models.BooleanField(blank=True, null=True)),
            ],
            options={
                "db_table": "redrive_attempt",
                "indexes": [
                    models.Index(
                        models.F("sent_message_id"),
                        condition=models.Q(("sent_message_id__isnull", False)),
                        name="attempts_by_the_id_they_got",
                    ),
                    models.Index(
                        models.F("target"),
                        models.F("lane"),
                        condition=models.Q(("closed_at", None)),
                        name="attempts_still_open",
                    ),
                    models.Index(models.F("run"), models.F("outcome"), name="attempts_of_a_run"),
                    models.Index(models.F("breaker"), models.F("id"), name="attempts_in_sending_order"),
                    models.Index(
                        models.F("wave"),
                        models.F("id"),
                        condition=models.Q(("wave__isnull", False)),
                        name="attempts_of_a_wave",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("letter", "no"), name="an_attempt_number_is_never_reused"),
                    models.UniqueConstraint(
                        condition=models.Q(("holds_lane", True)), fields=("lane",), name="one_attempt_holds_a_lane"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("closed_at", None), ("outcome", None)),
                            models.Q(("closed_at__isnull", False), ("outcome__isnull", False)),
                            _connector="OR",
                        ),
                        name="a_closed_attempt_has_an_outcome",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("holds_lane", False), ("closed_at", None), _connector="OR"),
                        name="a_closed_attempt_holds_no_lane",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Claim",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "target_id",
                        "key_space",
                        "key_hash",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "target",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="reprocessing.target"
                    ),
                ),
                ("key_space", models.TextField()),
                ("key_hash", models.BinaryField()),
                (
                    "letter",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="claims", to="reprocessing.deadletter"
                    ),
                ),
                (
                    "state",
                    models.TextField(
                        choices=[
                            ("held", "held: a letter under this key is under way"),
                            ("free", "free: the letter under this key failed, another may try"),
                            ("delivered", "delivered: a letter under this key was delivered"),
                            ("discarded", "discarded: a person gave up the letter under this key"),
                        ]
                    ),
                ),
                ("body_hash", models.BinaryField()),
                ("until", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "db_table": "redrive_claim",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "held"), _negated=True), ("until__isnull", False), _connector="OR"
                        ),
                        name="a_held_claim_says_until_when",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Doubt",
            fields=[
                (
                    "letter",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="doubt",
                        serialize=False,
                        to="reprocessing.deadletter",
                    ),
                ),
                ("receives", models.IntegerField(blank=True, null=True)),
                ("arrived", models.BooleanField(db_default=False)),
                ("came_back", models.IntegerField(blank=True, null=True)),
                (
                    "word",
                    models.TextField(
                        blank=True,
                        choices=[
                            ("delivered", "delivered since"),
                            ("parked", "parked for a person"),
                            ("replay", "to be replayed"),
                        ],
                        db_default="",
                    ),
                ),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "db_table": "redrive_doubt",
                "default_permissions": (),
                "indexes": [
                    models.Index(models.F("letter"), condition=models.Q(("word", "")), name="doubts_nobody_decided")
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("decided_at", None), ("word", "")),
                            models.Q(models.Q(("word", ""), _negated=True), ("decided_at__isnull", False)),
                            _connector="OR",
                        ),
                        name="a_word_about_a_doubt_says_when",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Notice",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "letter",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="notices",
                        to="reprocessing.deadletter",
                    ),
                ),
                (
                    "news",
                    models.TextField(
                        choices=[
                            ("parked", "parked: the copy goes into the parking queue"),
                            ("left", "released, discarded or come to another end: a mark follows its copy there"),
                        ]
                    ),
                ),
                ("made_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("sent_at", models.DateTimeField(blank=True, null=True)),
                ("trouble", models.TextField(blank=True, db_default="")),
            ],
            options={
                "db_table": "redrive_notice",
                "indexes": [
                    models.Index(models.F("id"), condition=models.Q(("sent_at", None)), name="notices_not_sent")
                ],
            },
        ),
        migrations.CreateModel(
            name="ParkedLetter",
            fields=[],
            options={"proxy": True, "default_permissions": ("view", "release", "discard", "edit", "assign")},
            bases=("reprocessing.deadletter",),
        ),
        migrations.CreateModel(
            name="Payload",
            fields=[
                (
                    "letter",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="payload",
                        serialize=False,
                        to="reprocessing.deadletter",
                    ),
                ),
                ("body", models.BinaryField()),
                ("attributes", models.BinaryField()),
                ("system", models.JSONField()),
            ],
            options={
                "db_table": "redrive_payload",
                "permissions": [("view_payload", "Can see payloads")],
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Review",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "act",
                    models.TextField(
                        choices=[
                            ("released", "released: back to its lane"),
                            ("discarded", "discarded: given up"),
                            ("stopped", "stopped"),
                            ("resumed", "resumed"),
                            ("added", "added"),
                            ("changed", "changed"),
                            ("planned", "planned"),
                            ("started", "started"),
                            ("paused", "paused"),
                            ("aborted", "aborted"),
                            ("reset", "reset"),
                            ("restored", "restored: back to the parking lot"),
                            ("edited", "edited"),
                            ("revealed", "looked at its payload"),
                            ("exported", "exported"),
                            ("assigned", "assigned"),
                            ("noted", "noted"),
                        ]
                    ),
                ),
                (
                    "letter",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reviews",
                        to="reprocessing.deadletter",
                    ),
                ),
                (
                    "dlq",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reviews",
                        to="reprocessing.deadletterqueue",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="reviews",
                        to="reprocessing.run",
                    ),
                ),
                (
                    "target",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="reviews",
                        to="reprocessing.target",
                    ),
                ),
                (
                    "rule",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="reviews",
                        to="reprocessing.rule",
                    ),
                ),
                (
                    "group",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reviews",
                        to="reprocessing.lettergroup",
                    ),
                ),
                (
                    "operation",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reviews",
                        to="reprocessing.operation",
                    ),
                ),
                ("by", models.TextField()),
                ("reason", models.TextField()),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("before", models.JSONField(default=dict)),
                ("after", models.JSONField(default=dict)),
            ],
            options={
                "db_table": "redrive_review",
                "indexes": [
                    models.Index(models.F("letter"), models.F("at"), name="reviews_of_a_letter"),
                    models.Index(
                        models.F("group"),
                        models.F("id"),
                        condition=models.Q(("group__isnull", False)),
                        name="reviews_of_a_group",
                    ),
                    models.Index(
                        models.F("operation"),
                        models.F("id"),
                        condition=models.Q(("operation__isnull", False)),
                        name="reviews_of_an_operation",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("by", ""), _negated=True), models.Q(("reason", ""), _negated=True)
                        ),
                        name="a_review_says_who_and_why",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Revision",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "letter",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="revisions",
                        to="reprocessing.deadletter",
                    ),
                ),
                ("no", models.IntegerField()),
                ("body", models.BinaryField()),
                ("attributes", models.BinaryField()),
                ("body_hash", models.BinaryField()),
                ("former_hash", models.BinaryField()),
                ("size", models.IntegerField()),
                ("idempotency_key", models.TextField(blank=True, null=True)),
                ("by", models.TextField()),
                ("reason", models.TextField()),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "db_table": "redrive_revision",
                "default_permissions": (),
                "indexes": [
                    models.Index(models.F("body_hash"), name="revisions_by_their_body"),
                    models.Index(models.F("former_hash"), name="revisions_by_what_was_before"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("letter", "no"), name="a_revision_number_is_never_reused"),
                    models.CheckConstraint(condition=models.Q(("no__gte", 1)), name="revisions_are_counted_from_one"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("by", ""), _negated=True), models.Q(("reason", ""), _negated=True)
                        ),
                        name="a_revision_says_who_and_why",
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="deadletter",
            name="revision",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="reprocessing.revision",
            ),
        ),
        migrations.CreateModel(
            name="Custody",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "dlq_id", "message_id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "dlq",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="reprocessing.deadletterqueue",
                    ),
                ),
                ("message_id", models.TextField()),
                (
                    "letter",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="copies", to="reprocessing.deadletter"
                    ),
                ),
                (
                    "attempt",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="reprocessing.attempt",
                    ),
                ),
                (
                    "state",
                    models.TextField(
                        choices=[
                            ("held", "held: invisible in the dlq until its letter is finished"),
                            ("delete", "to be deleted"),
                            ("gone", "deleted; remembered, because identity outlives history"),
                        ]
                    ),
                ),
                ("handle", models.TextField()),
                ("visible_until", models.DateTimeField()),
                ("extended", models.BooleanField(db_default=False)),
                ("receives", models.IntegerField(db_default=1)),
                ("gone_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "verbose_name_plural": "custody",
                "db_table": "redrive_custody",
                "indexes": [
                    models.Index(models.F("dlq"), condition=models.Q(("state", "delete")), name="copies_to_be_deleted"),
                    models.Index(
                        models.F("dlq"),
                        models.F("visible_until"),
                        condition=models.Q(("state", "held")),
                        name="copies_held",
                    ),
                    models.Index(models.F("gone_at"), condition=models.Q(("state", "gone")), name="copies_gone"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("gone_at__isnull", False), ("state", "gone")),
                            models.Q(models.Q(("state", "gone"), _negated=True), ("gone_at", None)),
                            _connector="OR",
                        ),
                        name="a_copy_that_is_gone_says_since_when",
                    )
                ],
            },
        ),
        KeysAtOnce(migrations.RunSQL.noop, migrations.RunSQL.noop),
    ]
