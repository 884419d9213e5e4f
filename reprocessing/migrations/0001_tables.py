import uuid

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
import django.db.models.functions.text
import django.db.models.lookups
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState


class RunDeferredSql(migrations.RunSQL):
    """Run inside the transaction what Django defers to its end.

    Otherwise Django records the migration after the commit, and a process killed in between leaves tables that no
    migration knows.
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

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="HourlyCountDelta",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("dlq_id", models.BigIntegerField()),
                ("hour", models.DateTimeField()),
                ("what", models.TextField()),
                ("n", models.BigIntegerField()),
            ],
            options={
                "db_table": "redrive_hourly_count_delta",
                "abstract": False,
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="LetterCountDelta",
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
                "db_table": "redrive_letter_count_delta",
                "abstract": False,
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="BulkAction",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("token", models.UUIDField(default=uuid.uuid4, unique=True)),
                (
                    "act",
                    models.TextField(
                        choices=[
                            ("release", "release"),
                            ("discard", "discard"),
                            ("restore", "restore to the parking lot"),
                            ("assign", "assign"),
                            ("note", "note"),
                            ("edit", "edit"),
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
                            ("aborted", "aborted: messages that were changed stay changed"),
                        ],
                        db_default="running",
                    ),
                ),
                ("asked_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("started_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("max_letter_id", models.BigIntegerField()),
                ("cursor", models.BigIntegerField(db_default=0)),
                ("asked", models.IntegerField()),
                ("done", models.IntegerField(db_default=0)),
                ("letters_skipped", models.IntegerField(db_default=0)),
                ("refusals", models.JSONField(default=dict)),
                ("leased_until", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("aborted_by", models.TextField(blank=True, db_default="")),
                ("why", models.TextField(blank=True, db_default="")),
            ],
            options={
                "db_table": "redrive_bulk_action",
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(models.F("id"), condition=models.Q(("state", "running")), name="running_bulk_actions")
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("by", ""), _negated=True), models.Q(("reason", ""), _negated=True)
                        ),
                        name="bulk_action_has_person_and_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("finished_at", None), ("state", "running")),
                            models.Q(models.Q(("state", "running"), _negated=True), ("finished_at__isnull", False)),
                            _connector="OR",
                        ),
                        name="only_ended_bulk_action_has_end_time",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "aborted"), _negated=True),
                            models.Q(models.Q(("aborted_by", ""), _negated=True), models.Q(("why", ""), _negated=True)),
                            _connector="OR",
                        ),
                        name="aborted_bulk_action_has_person_and_reason",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Policy",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.SlugField(max_length=100, unique=True)),
                ("settings", models.JSONField(default=dict)),
            ],
            options={"verbose_name_plural": "policies", "db_table": "redrive_policy"},
        ),
        migrations.CreateModel(
            name="ManagedObject",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.TextField(
                        choices=[
                            ("policies", "policy"),
                            ("rate_classes", "rate class"),
                            ("targets", "target"),
                            ("dlqs", "DLQ"),
                            ("rules", "rule"),
                            ("notifications", "notification route"),
                            ("approvals", "approval limit"),
                        ]
                    ),
                ),
                ("name", models.TextField()),
                ("written", models.JSONField()),
                ("applied_from", models.TextField(blank=True)),
                ("applied_by", models.TextField()),
                ("applied_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("unlocked_at", models.DateTimeField(blank=True, null=True)),
                ("unlocked_by", models.TextField(blank=True, default="")),
                ("unlock_reason", models.TextField(blank=True, default="")),
            ],
            options={
                "db_table": "redrive_managed_object",
                "permissions": [("unlock_managedobject", "Can unlock objects that a configuration file manages")],
                "default_permissions": ("view",),
                "constraints": [
                    models.UniqueConstraint(fields=("kind", "name"), name="one_mark_per_managed_object"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("unlock_reason", ""), ("unlocked_at", None), ("unlocked_by", "")),
                            models.Q(
                                ("unlocked_at__isnull", False),
                                models.Q(("unlocked_by", ""), _negated=True),
                                models.Q(("unlock_reason", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="unlock_has_person_and_reason",
                    ),
                ],
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
                            ("observe", "observe: read queue attributes only"),
                            ("manual", "manual: redrive when a person starts a run"),
                            ("automatic", "automatic: capture and redrive on a schedule"),
                        ],
                        default="manual",
                    ),
                ),
                (
                    "policy",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="dlqs",
                        to="reprocessing.policy",
                    ),
                ),
                (
                    "own_settings",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), blank=True, default=list, size=None
                    ),
                ),
                ("ordering_key", models.TextField(default="none")),
                ("sequence", models.TextField(default="system:SentTimestamp")),
                ("idempotency_key", models.TextField(default="message-id")),
                (
                    "missing_key",
                    models.TextField(
                        choices=[("park", "park the message"), ("lane", "send it without ordering")], default="park"
                    ),
                ),
                (
                    "delete_when",
                    models.TextField(
                        choices=[
                            ("terminal", "when the message is finished"),
                            ("captured", "as soon as the message is captured"),
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
                        choices=[("full", "full: between 0 and the whole delay"), ("none", "none: the whole delay")],
                        default="full",
                    ),
                ),
                ("new_key_delay", models.FloatField(blank=True, null=True)),
                (
                    "when_parked",
                    models.TextField(
                        choices=[
                            ("aside", "continue with the key's next message"),
                            ("hold", "hold the key until a person decides"),
                        ],
                        default="aside",
                    ),
                ),
                (
                    "stale",
                    models.TextField(choices=[("park", "park it"), ("deliver", "deliver it late")], default="park"),
                ),
                ("receive_limit", models.PositiveIntegerField(blank=True, null=True)),
                ("message_type", models.TextField(blank=True, default="")),
                ("tenant", models.TextField(blank=True, default="")),
                ("waves", models.BooleanField(default=True)),
                ("wave_success", models.FloatField(default=0.8)),
                ("give_up_after", models.FloatField(blank=True, default=86400, null=True)),
                ("approval_above", models.PositiveIntegerField(blank=True, null=True)),
                ("keep_bodies", models.PositiveIntegerField(blank=True, null=True)),
                ("public_fields", models.JSONField(blank=True, default=list)),
                ("masked_fields", models.JSONField(blank=True, default=list)),
                (
                    "search_fields",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), blank=True, default=list, size=None
                    ),
                ),
                ("search_version", models.IntegerField(default=0)),
                ("search_indexed_for", models.TextField(blank=True, default="")),
                ("search_reindex_below", models.BigIntegerField(blank=True, null=True)),
                ("held_copies_limit", models.PositiveIntegerField(default=20000)),
                ("parking_url", models.TextField(blank=True, default="")),
                ("at_once", models.BooleanField(default=False)),
                ("stopped_at", models.DateTimeField(blank=True, null=True)),
                ("stopped_by", models.TextField(blank=True, default="")),
                ("stop_reason", models.TextField(blank=True, default="")),
                ("aws_redrive_since", models.DateTimeField(blank=True, null=True)),
                ("aws_redrive_by", models.TextField(blank=True, db_default="", default="")),
                ("aws_redrive_reason", models.TextField(blank=True, db_default="", default="")),
                ("aws_redrive_destination", models.TextField(blank=True, db_default="", default="")),
                ("aws_redrive_task", models.TextField(blank=True, db_default="", default="")),
                ("aws_redrive_last_task_at", models.DateTimeField(blank=True, null=True)),
                ("aws_redrive_asked_at", models.DateTimeField(blank=True, null=True)),
                ("aws_redrive_answered_at", models.DateTimeField(blank=True, null=True)),
                ("aws_redrive_error", models.TextField(blank=True, db_default="", default="")),
                ("aws_may_have_moved_at", models.DateTimeField(blank=True, null=True)),
                ("next_poll_at", models.DateTimeField(blank=True, null=True)),
                ("poll_began_at", models.DateTimeField(blank=True, null=True)),
                ("leased_until", models.DateTimeField(blank=True, null=True)),
                ("fence", models.BigIntegerField(default=0)),
                ("orphans_hidden_until", models.DateTimeField(blank=True, null=True)),
                ("places_version", models.IntegerField(default=0)),
                ("drained_through", models.DateTimeField(blank=True, null=True)),
                ("swept_through", models.DateTimeField(blank=True, null=True)),
                ("bodies_deleted_through", models.DateTimeField(blank=True, null=True)),
                ("depth_visible", models.BigIntegerField(blank=True, null=True)),
                ("depth_in_flight", models.BigIntegerField(blank=True, null=True)),
                ("depth_at", models.DateTimeField(blank=True, null=True)),
                ("uncaptured_since", models.DateTimeField(blank=True, null=True)),
                ("last_error", models.TextField(blank=True, default="")),
                ("added_at", models.DateTimeField(auto_now_add=True)),
                (
                    "teams",
                    models.ManyToManyField(
                        blank=True, db_table="redrive_dlq_team", related_name="dlqs", to="auth.group"
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
                (
                    "interval",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="django_celery_beat.intervalschedule",
                    ),
                ),
            ],
            options={
                "verbose_name": "dead-letter queue",
                "db_table": "redrive_dlq",
                "permissions": [
                    ("stop_deadletterqueue", "Can stop and resume a DLQ's sends"),
                    ("view_all_dlqs", "Can see the DLQs of all teams"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("max_attempts__gte", 1)), name="dlq_allows_at_least_one_attempt"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("backoff_jitter__in", ["full", "none"]),
                            ("delete_when__in", ["terminal", "captured"]),
                            ("missing_key__in", ["park", "lane"]),
                            ("mode__in", ["observe", "manual", "automatic"]),
                            ("stale__in", ["park", "deliver"]),
                            ("when_parked__in", ["aside", "hold"]),
                        ),
                        name="dlq_choices_are_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("wave_success__gte", 0), ("wave_success__lte", 1)),
                        name="wave_success_between_0_and_1",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("give_up_after", None),
                            models.Q(("give_up_after__gte", 1), ("give_up_after__lte", 1209600)),
                            _connector="OR",
                        ),
                        name="give_up_after_between_1_second_and_14_days",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("keep_bodies", None), ("keep_bodies__lte", 3650), _connector="OR"),
                        name="keep_bodies_at_most_10_years",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("search_fields__len__lte", 10)), name="dlq_has_at_most_10_search_fields"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("backoff_base__gte", 0),
                            ("backoff_base__lte", 1209600),
                            ("backoff_cap__gte", 0),
                            ("backoff_cap__lte", 1209600),
                        ),
                        name="dlq_backoff_at_most_14_days",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("new_key_delay", None),
                            models.Q(("new_key_delay__gte", 0), ("new_key_delay__lte", 1209600)),
                            _connector="OR",
                        ),
                        name="new_key_delay_at_most_14_days",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("interval", None), ("crontab", None), _connector="OR"),
                        name="dlq_has_interval_or_crontab",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("fifo", True), _negated=True), ("delete_when", "captured"), _connector="OR"
                        ),
                        name="fifo_dlq_deletes_when_captured",
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
                        name="dlq_stop_has_person_and_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("aws_redrive_by", ""),
                                ("aws_redrive_destination", ""),
                                ("aws_redrive_reason", ""),
                                ("aws_redrive_since", None),
                                ("aws_redrive_task", ""),
                            ),
                            models.Q(
                                ("aws_redrive_since__isnull", False),
                                models.Q(("aws_redrive_by", ""), _negated=True),
                                models.Q(("aws_redrive_reason", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="aws_redrive_has_person_and_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("own_settings", []), ("policy__isnull", False), _connector="OR"),
                        name="only_dlq_with_policy_has_own_settings",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("aws_redrive_since", None), ("leased_until", None), _connector="OR"),
                        name="no_capture_during_aws_redrive",
                    ),
                ],
                "indexes": [],
            },
        ),
        migrations.CreateModel(
            name="PayloadKey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("day", models.DateField(blank=True, null=True)),
                ("wrapped", models.BinaryField(blank=True, null=True)),
                ("wrapped_by", models.TextField()),
                ("made_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("destroyed_at", models.DateTimeField(blank=True, null=True)),
                ("destroyed_by", models.TextField(blank=True, default="")),
                ("destroy_reason", models.TextField(blank=True, default="")),
                (
                    "dlq",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="reprocessing.deadletterqueue",
                    ),
                ),
            ],
            options={
                "db_table": "redrive_payload_key",
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("destroyed_at", None)),
                        fields=("dlq", "day"),
                        name="one_payload_key_per_dlq_and_day",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("dlq__isnull", False),
                            models.Q(("day", None), ("destroyed_at", None), ("dlq", None)),
                            _connector="OR",
                        ),
                        name="only_installation_key_has_no_dlq",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("destroy_reason", ""),
                                ("destroyed_at", None),
                                ("destroyed_by", ""),
                                ("wrapped__isnull", False),
                            ),
                            models.Q(
                                ("destroyed_at__isnull", False),
                                ("wrapped", None),
                                models.Q(("destroyed_by", ""), _negated=True),
                                models.Q(("destroy_reason", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="destroyed_payload_key_has_person_and_reason",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Erasure",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.BinaryField()),
                ("by", models.TextField()),
                ("reason", models.TextField()),
                ("started_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("counts", models.JSONField(default=dict)),
            ],
            options={
                "db_table": "redrive_erasure",
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("finished_at", None)), fields=("digest",), name="one_open_erasure_per_value"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("by", ""), _negated=True), models.Q(("reason", ""), _negated=True)
                        ),
                        name="erasure_has_person_and_reason",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="FailureGroup",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("fingerprint", models.BinaryField()),
                ("cause", models.TextField()),
                ("title", models.TextField()),
                ("name", models.TextField(blank=True, db_default="")),
                (
                    "keys",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), blank=True, db_default=[], size=None
                    ),
                ),
                (
                    "status",
                    models.TextField(
                        choices=[
                            ("open", "open"),
                            ("acknowledged", "acknowledged: somebody works on it"),
                            ("resolved", "resolved: reopens when it recurs"),
                            ("ignored", "ignored: stays ignored when it recurs"),
                        ],
                        db_default="open",
                    ),
                ),
                ("note", models.TextField(blank=True, db_default="")),
                ("merged_at", models.DateTimeField(blank=True, null=True)),
                ("first_at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
                ("released_at", models.DateTimeField(blank=True, null=True)),
                ("settled_at", models.DateTimeField(blank=True, null=True)),
                ("status_by", models.TextField(blank=True, db_default="")),
                ("assigned_to", models.TextField(blank=True, db_default="")),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "dlq",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="groups",
                        to="reprocessing.deadletterqueue",
                    ),
                ),
                (
                    "merged_into",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="members",
                        to="reprocessing.failuregroup",
                    ),
                ),
            ],
            options={
                "verbose_name": "group",
                "db_table": "redrive_failure_group",
                "default_permissions": ("view", "change"),
                "indexes": [
                    models.Index(
                        models.OrderBy(models.F("last_at"), descending=True),
                        models.OrderBy(models.F("id"), descending=True),
                        name="groups_by_last_letter",
                    ),
                    models.Index(
                        models.F("merged_into"),
                        condition=models.Q(("merged_into__isnull", False)),
                        name="groups_by_merged_into",
                    ),
                    models.Index(
                        models.F("dlq"),
                        models.OrderBy(models.F("last_at"), descending=True),
                        condition=models.Q(("keys", []), _negated=True),
                        name="groups_with_shape",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("dlq", "fingerprint"), name="one_group_per_fingerprint_and_dlq"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("status", "open"),
                            models.Q(("settled_at__isnull", False), models.Q(("status_by", ""), _negated=True)),
                            _connector="OR",
                        ),
                        name="group_status_has_time_and_person",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("first_at__lte", models.F("last_at"))), name="group_first_not_after_last"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("merged_into", None),
                            models.Q(("merged_into", models.F("id")), _negated=True),
                            _connector="OR",
                        ),
                        name="group_is_not_merged_into_itself",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="GroupHour",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("group_id", models.BigIntegerField()),
                ("hour", models.DateTimeField()),
                ("n", models.BigIntegerField()),
            ],
            options={
                "db_table": "redrive_group_hour",
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("group_id", "hour"), name="one_count_per_group_and_hour")
                ],
                "indexes": [models.Index(models.F("hour"), name="group_hours_by_hour")],
            },
        ),
        migrations.CreateModel(
            name="GlobalStop",
            fields=[
                ("id", models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("since", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("by", models.TextField()),
                ("reason", models.TextField()),
                ("restored_to", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "db_table": "redrive_global_stop",
                "permissions": [("stop_sends", "Can stop and resume all sends")],
                "default_permissions": ("view",),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("id", 1), ("restored_to", None)),
                            models.Q(("id", 2), ("restored_to__isnull", False)),
                            _connector="OR",
                        ),
                        name="one_stop_by_hand_one_by_restore",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("by", ""), _negated=True), models.Q(("reason", ""), _negated=True)
                        ),
                        name="global_stop_has_person_and_reason",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Heartbeat",
            fields=[
                ("queue", models.TextField(primary_key=True, serialize=False)),
                ("consumed_at", models.DateTimeField()),
            ],
            options={
                "db_table": "redrive_heartbeat",
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("queue", ""), _negated=True), name="heartbeat_has_queue")
                ],
            },
        ),
        migrations.CreateModel(
            name="ProviderIdentity",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="provider_identity",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("issuer", models.TextField()),
                ("subject", models.TextField()),
                ("confirmed_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "db_table": "redrive_provider_identity",
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("issuer", "subject"), name="one_user_of_a_provider_identity"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("issuer", ""), _negated=True), models.Q(("subject", ""), _negated=True)
                        ),
                        name="provider_identity_has_issuer_and_subject",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="HourlyCount",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("dlq_id", models.BigIntegerField()),
                ("hour", models.DateTimeField()),
                ("what", models.TextField()),
                ("n", models.BigIntegerField()),
            ],
            options={
                "db_table": "redrive_hourly_count",
                "abstract": False,
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("dlq_id", "hour", "what"), name="one_count_per_hour_and_event")
                ],
            },
        ),
        migrations.CreateModel(
            name="Incident",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.TextField()),
                ("subject", models.TextField()),
                ("facts", models.JSONField()),
                ("times", models.IntegerField(db_default=1)),
                ("opened_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("changed_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("due_at", models.DateTimeField(blank=True, null=True)),
                ("filed_at", models.DateTimeField(blank=True, null=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "dlq",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="reprocessing.deadletterqueue",
                    ),
                ),
            ],
            options={
                "db_table": "redrive_incident",
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(
                        models.F("due_at"), condition=models.Q(("due_at__isnull", False)), name="incidents_by_due_time"
                    ),
                    models.Index(
                        models.F("ended_at"), condition=models.Q(("ended_at__isnull", False)), name="incidents_by_end"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at", None)),
                        fields=("kind", "subject"),
                        name="one_open_incident_per_kind_and_subject",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("kind", ""), _negated=True), models.Q(("subject", ""), _negated=True)
                        ),
                        name="incident_has_kind_and_subject",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("times__gte", 1)), name="incident_announced_at_least_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("ended_at", None), ("ended_at__gte", models.F("opened_at")), _connector="OR"
                        ),
                        name="incident_ends_after_it_opens",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="LetterCount",
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
                "db_table": "redrive_letter_count",
                "abstract": False,
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("dlq_id", "group_id", "state", "reason", "presumed"), name="one_letter_count_per_kind"
                    )
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
                    models.UniqueConstraint(fields=("name", "place", "part"), name="one_metric_per_name_and_label"),
                    models.CheckConstraint(condition=models.Q(("value__gte", 0)), name="metric_value_not_negative"),
                ],
            },
        ),
        migrations.CreateModel(
            name="NotificationRoute",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("destination", models.TextField(unique=True)),
                (
                    "kinds",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), blank=True, default=list, size=None
                    ),
                ),
                ("next_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("leased_until", models.DateTimeField(blank=True, null=True)),
                ("fence", models.BigIntegerField(db_default=0)),
                ("failures", models.IntegerField(db_default=0)),
                ("last_error", models.TextField(blank=True, db_default="")),
                ("sent_at", models.DateTimeField(blank=True, null=True)),
                (
                    "dlqs",
                    models.ManyToManyField(
                        blank=True, related_name="notification_routes", to="reprocessing.deadletterqueue"
                    ),
                ),
            ],
            options={
                "db_table": "redrive_notification_route",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("destination", ""), _negated=True), name="route_has_destination"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "kinds__contained_by",
                                [
                                    "breaker_open",
                                    "run_stopped",
                                    "run_finished",
                                    "run_stalled",
                                    "failure_group_new",
                                    "failure_group_reopened",
                                    "parked_many",
                                    "parked_old",
                                    "messages_expiring",
                                    "dlq_growing",
                                    "redrive_loop",
                                    "beat_silent",
                                    "workers_silent",
                                    "restore_detected",
                                    "doctor_worse",
                                    "dlq_discovered",
                                    "approval_requested",
                                    "acted_alone",
                                ],
                            )
                        ),
                        name="route_events_are_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("failures", 0), ("last_error", "")),
                            models.Q(("failures__gt", 0), models.Q(("last_error", ""), _negated=True)),
                            _connector="OR",
                        ),
                        name="failing_destination_has_error",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Notification",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "phase",
                    models.TextField(choices=[("opened", "opened"), ("reminded", "reminded"), ("ended", "ended")]),
                ),
                ("filed_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("sent_at", models.DateTimeField(blank=True, null=True)),
                ("given_up_at", models.DateTimeField(blank=True, null=True)),
                (
                    "incident",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notifications",
                        to="reprocessing.incident",
                    ),
                ),
                (
                    "route",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notifications",
                        to="reprocessing.notificationroute",
                    ),
                ),
            ],
            options={
                "db_table": "redrive_notification",
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(
                        models.F("route"),
                        models.F("id"),
                        condition=models.Q(("given_up_at", None), ("sent_at", None)),
                        name="pending_notifications",
                    ),
                    models.Index(
                        models.F("route"),
                        models.F("sent_at"),
                        condition=models.Q(("sent_at__isnull", False)),
                        name="notifications_by_sent_time",
                    ),
                    models.Index(
                        models.F("given_up_at"),
                        condition=models.Q(("given_up_at__isnull", False)),
                        name="notifications_by_give_up_time",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(
                            models.Q(("phase", "reminded"), _negated=True),
                            models.Q(("given_up_at", None), ("sent_at", None)),
                            _connector="OR",
                        ),
                        fields=("incident", "route", "phase"),
                        name="one_notification_per_incident_route_and_phase",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("sent_at", None), ("given_up_at", None), _connector="OR"),
                        name="sent_notification_is_not_given_up",
                    ),
                ],
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
                        choices=[("full", "full: between 0 and the whole delay"), ("none", "none: the whole delay")],
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
                        name="class_rate_between_0_001_and_1000000",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("burst", None), models.Q(("burst__gte", 1), ("burst__lte", 1000000)), _connector="OR"
                        ),
                        name="class_burst_between_1_and_1000000",
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
                        name="class_backoff_complete_or_absent",
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
                "constraints": [models.CheckConstraint(condition=models.Q(("id", 1)), name="one_rulebook_row")],
            },
        ),
        migrations.CreateModel(
            name="Run",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.SlugField(max_length=100, unique=True)),
                (
                    "kind",
                    models.TextField(
                        choices=[
                            ("automatic", "automatic: redrives whatever the DLQ holds"),
                            ("drain", "drain: redrives a selection"),
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
                            ("paused", "paused"),
                            ("aborted", "aborted: queued messages are left to another run"),
                            ("finished", "finished"),
                        ],
                        default="planned",
                    ),
                ),
                ("selection", models.JSONField(default=dict)),
                ("asked_by", models.TextField(default="")),
                ("reason", models.TextField(blank=True, default="")),
                ("waves", models.BooleanField(db_default=False)),
                ("rate", models.FloatField(blank=True, null=True)),
                ("waits_for_outcomes", models.BooleanField(db_default=True)),
                ("figures", models.JSONField(blank=True, null=True)),
                ("selected", models.IntegerField(blank=True, null=True)),
                ("behind", models.IntegerField(blank=True, null=True)),
                ("stopped_by", models.TextField(blank=True, db_default="")),
                ("why", models.TextField(blank=True, db_default="")),
                ("changed_at", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "dlq",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="runs",
                        to="reprocessing.deadletterqueue",
                    ),
                ),
            ],
            options={
                "db_table": "redrive_run",
                "default_permissions": ("view", "operate"),
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("kind", "automatic")), fields=("dlq",), name="one_automatic_run_per_dlq"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state__in", ["finished", "aborted"]), _negated=True),
                            ("kind", "drain"),
                            _connector="OR",
                        ),
                        name="automatic_run_never_ends",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state__in", ["paused", "aborted"]), _negated=True),
                            models.Q(models.Q(("why", ""), _negated=True), models.Q(("stopped_by", ""), _negated=True)),
                            _connector="OR",
                        ),
                        name="stopped_run_has_person_and_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("rate", None),
                            models.Q(("rate__gte", 0.001), ("rate__lte", 1000000)),
                            _connector="OR",
                        ),
                        name="run_rate_between_0_001_and_1000000",
                    ),
                ],
                "indexes": [
                    models.Index(models.F("state"), models.F("id"), name="runs_by_state"),
                    models.Index(models.F("asked_by"), models.F("id"), name="runs_by_person"),
                    models.Index(models.F("dlq"), models.F("id"), name="runs_by_dlq"),
                ],
            },
        ),
        migrations.CreateModel(
            name="RunMinute",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("run_id", models.BigIntegerField()),
                ("minute", models.DateTimeField()),
                ("sent", models.BigIntegerField()),
            ],
            options={
                "db_table": "redrive_run_minute",
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("run_id", "minute"), name="one_count_per_run_and_minute")
                ],
                "indexes": [models.Index(models.F("minute"), name="run_minutes_by_minute")],
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
                            ("topic", "SNS topic: all subscribers get the message again"),
                            ("bus", "EventBridge bus: all rules get the message again"),
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
                            ("accepted", "accepted: the target accepted the message"),
                            ("absence", "absence: the message did not come back (presumed)"),
                            ("acknowledged", "acknowledged: the consumer reported success"),
                        ],
                        default="accepted",
                    ),
                ),
                (
                    "advance",
                    models.TextField(
                        choices=[
                            ("accepted", "when the target accepted the previous message"),
                            ("settled", "when the previous message's outcome is known"),
                        ],
                        default="accepted",
                    ),
                ),
                ("rate", models.FloatField(blank=True, null=True)),
                ("burst", models.FloatField(blank=True, null=True)),
                ("window", models.FloatField(default=0)),
                ("visibility", models.IntegerField(default=30)),
                ("size_limit", models.IntegerField(default=1048576)),
                ("role_arn", models.TextField(blank=True, default="")),
                ("timeout", models.FloatField(default=30)),
                ("answers", models.TextField(blank=True, default="")),
                ("content_type", models.TextField(blank=True, default="")),
                ("secret", models.TextField(blank=True, default="")),
                ("strips_eta", models.BooleanField(default=False)),
                ("strips_expires", models.BooleanField(default=False)),
                ("resets_retries", models.BooleanField(default=False)),
                ("renews_id", models.BooleanField(default=False)),
                ("confirmed_fanout", models.IntegerField(blank=True, null=True)),
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
                        name="target_choices_are_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("rate", None), models.Q(("rate__gte", 0.001), ("rate__lte", 1000000)), _connector="OR"
                        ),
                        name="target_rate_between_0_001_and_1000000",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("burst", None), models.Q(("burst__gte", 1), ("burst__lte", 1000000)), _connector="OR"
                        ),
                        name="target_burst_between_1_and_1000000",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("window__gte", 0), ("window__lte", 1209600)),
                        name="return_window_at_most_14_days",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("proof", "absence"), _negated=True),
                            ("watched_by__isnull", False),
                            _connector="OR",
                        ),
                        name="proof_by_absence_needs_dlq",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("timeout__gt", 0), ("timeout__lte", 900)),
                        name="target_timeout_at_most_15_minutes",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("kind__in", ["topic", "bus"]), _negated=True),
                            models.Q(("confirmed_fanout__gte", 0), ("confirmed_fanout__isnull", False)),
                            _connector="OR",
                        ),
                        name="topic_and_bus_have_confirmed_fanout",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Breaker",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("threshold", models.IntegerField(db_default=5)),
                ("ratio", models.FloatField(db_default=0.5)),
                ("at_least", models.IntegerField(db_default=20)),
                ("cooldown", models.FloatField(db_default=30.0)),
                ("cooldown_cap", models.FloatField(db_default=600.0)),
                ("canaries_to_close", models.IntegerField(db_default=3)),
                ("ramp_from", models.FloatField(db_default=0.1)),
                ("ramp_every", models.FloatField(db_default=10.0)),
                (
                    "state",
                    models.TextField(
                        choices=[
                            ("closed", "closed: messages are sent"),
                            ("open", "open: nothing is sent until the cooldown ends"),
                            ("half_open", "half open: one canary at a time"),
                        ],
                        db_default="closed",
                    ),
                ),
                ("since", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("why", models.TextField(blank=True, db_default="")),
                ("epoch", models.BigIntegerField(db_default=0)),
                ("current_cooldown", models.FloatField(db_default=0.0)),
                ("retry_at", models.DateTimeField(blank=True, null=True)),
                ("canary_until", models.DateTimeField(blank=True, null=True)),
                ("failing_since", models.DateTimeField(blank=True, null=True)),
                ("successes", models.IntegerField(db_default=0)),
                ("ramp", models.FloatField(db_default=0.1)),
                ("ramp_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("ramp_reason", models.TextField(blank=True, db_default="")),
                ("ramp_failure_ratio", models.FloatField(db_default=0.0)),
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
                (
                    "target",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="breakers",
                        to="reprocessing.target",
                    ),
                ),
            ],
            options={
                "db_table": "redrive_breaker",
                "permissions": [("reset_breaker", "Can reset circuit breakers")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("target", "rate_class"), name="one_breaker_per_target_and_class", nulls_distinct=False
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("at_least__gte", 1),
                            ("canaries_to_close__gte", 1),
                            ("ratio__gt", 0),
                            ("ratio__lte", 1),
                            ("threshold__gte", 1),
                        ),
                        name="breaker_limits_are_reachable",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("cooldown__gt", 0),
                            ("cooldown_cap__gte", models.F("cooldown")),
                            ("cooldown_cap__lte", 1209600),
                        ),
                        name="breaker_cooldown_at_most_cap_at_most_14_days",
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
                        name="ramp_between_0_and_1",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("retry_at__isnull", False), ("state", "open")),
                            models.Q(models.Q(("state", "open"), _negated=True), ("retry_at", None)),
                            _connector="OR",
                        ),
                        name="only_open_breaker_has_retry_time",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("canary_until", None), ("state", "half_open"), _connector="OR"),
                        name="only_half_open_breaker_has_canary",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("failing_since", None), models.Q(("state", "closed"), _negated=True), _connector="OR"
                        ),
                        name="closed_breaker_is_not_failing",
                    ),
                ],
            },
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
            options={
                "db_table": "redrive_reporter",
            },
        ),
        migrations.CreateModel(
            name="Report",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("message_id", models.TextField(blank=True, null=True)),
                ("public_id", models.UUIDField(blank=True, null=True)),
                ("attempt_no", models.IntegerField(blank=True, null=True)),
                (
                    "verdict",
                    models.TextField(
                        choices=[
                            ("delivered", "delivered: the consumer succeeded"),
                            ("failed", "failed: the consumer failed and will not try again"),
                            ("retrying", "retrying: the consumer failed; the queue delivers the message again"),
                        ]
                    ),
                ),
                ("type", models.TextField(blank=True, default="")),
                ("message", models.TextField(blank=True, default="")),
                ("fingerprint", models.TextField(blank=True, default="")),
                ("happened_at", models.DateTimeField()),
                ("received_at", models.DateTimeField()),
                ("digest", models.BinaryField(unique=True)),
                (
                    "reporter",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reports",
                        to="reprocessing.reporter",
                    ),
                ),
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
                    models.Index(models.F("received_at"), name="reports_by_time"),
                    models.Index(models.F("reporter"), models.F("received_at"), name="reports_by_reporter"),
                    models.Index(
                        models.F("fingerprint"),
                        models.F("id"),
                        condition=models.Q(("fingerprint", ""), _negated=True),
                        name="reports_by_fingerprint",
                    ),
                    models.Index(models.F("verdict"), models.F("id"), name="reports_by_verdict"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("message_id__isnull", False), ("public_id__isnull", False), _connector="OR"
                        ),
                        name="report_names_a_message",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("attempt_no", None), ("public_id__isnull", False), _connector="OR"),
                        name="report_with_attempt_names_a_letter",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Rule",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.SlugField(max_length=100, unique=True)),
                ("position", models.IntegerField(db_default=100)),
                ("enabled", models.BooleanField(db_default=False)),
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
                ("backoff_base", models.FloatField(blank=True, null=True)),
                ("backoff_cap", models.FloatField(blank=True, null=True)),
                (
                    "backoff_jitter",
                    models.TextField(
                        blank=True,
                        choices=[("full", "full: between 0 and the whole delay"), ("none", "none: the whole delay")],
                        null=True,
                    ),
                ),
                ("valid_from", models.DateTimeField(blank=True, null=True)),
                ("valid_until", models.DateTimeField(blank=True, null=True)),
                ("match_count", models.BigIntegerField(db_default=0)),
                ("error_count", models.BigIntegerField(db_default=0)),
                ("last_hit_at", models.DateTimeField(blank=True, null=True)),
                ("last_error", models.TextField(blank=True, db_default="")),
                ("created_by", models.TextField()),
                ("made_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
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
            ],
            options={
                "db_table": "redrive_rule",
                "indexes": [models.Index(models.F("position"), models.F("id"), name="rules_by_position")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("action", "delay"), ("delay__gt", 0), ("delay__isnull", False), ("delay__lte", 1209600)
                            ),
                            models.Q(models.Q(("action", "delay"), _negated=True), ("delay", None)),
                            _connector="OR",
                        ),
                        name="only_delay_rule_has_delay",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("action", "divert"), _negated=True), ("target__isnull", False), _connector="OR"
                        ),
                        name="divert_rule_has_target",
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
                        name="rule_ends_after_it_begins",
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
                        name="rule_backoff_complete_or_absent",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("created_by", ""), _negated=True), name="rule_has_author"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Source",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("arn", models.TextField()),
                ("removed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "dlq",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sources",
                        to="reprocessing.deadletterqueue",
                    ),
                ),
                (
                    "target",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="sources", to="reprocessing.target"
                    ),
                ),
            ],
            options={
                "db_table": "redrive_source",
                "constraints": [models.UniqueConstraint(fields=("dlq", "arn"), name="one_source_per_dlq_and_arn")],
            },
        ),
        migrations.CreateModel(
            name="Lane",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key_hash", models.BinaryField()),
                ("key", models.TextField(blank=True, null=True)),
                ("single", models.BooleanField(db_default=False)),
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
                ("highest_sent_sequence", models.TextField(blank=True, db_collation="C", null=True)),
                ("hinted_until", models.DateTimeField(blank=True, null=True)),
                ("why", models.TextField(blank=True, db_default="")),
                ("stopped_at", models.DateTimeField(blank=True, null=True)),
                ("stopped_by", models.TextField(blank=True, db_default="")),
                ("stop_reason", models.TextField(blank=True, db_default="")),
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
                    "run",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="reprocessing.run",
                    ),
                ),
                (
                    "source",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="lanes",
                        to="reprocessing.source",
                    ),
                ),
            ],
            options={
                "db_table": "redrive_lane",
                "permissions": [("stop_lane", "Can stop and resume key queues")],
                "indexes": [
                    models.Index(models.F("run"), models.F("due_at"), name="lanes_by_run"),
                    models.Index(
                        models.F("breaker"),
                        models.F("run"),
                        models.F("due_at"),
                        condition=models.Q(("breaker__isnull", False), ("phase", "ready")),
                        name="ready_lanes_by_breaker",
                    ),
                    models.Index(
                        models.F("run"),
                        models.F("breaker"),
                        models.F("due_at"),
                        condition=models.Q(("phase", "ready")),
                        name="ready_lanes_by_run",
                    ),
                    models.Index(
                        models.F("hinted_until"),
                        condition=models.Q(("hinted_until__isnull", False), ("phase", "ready")),
                        name="hinted_lanes",
                    ),
                    models.Index(models.F("dlq"), condition=models.Q(("phase", "held")), name="held_lanes_by_dlq"),
                    models.Index(
                        models.F("due_at"), condition=models.Q(("phase", "leased")), name="leased_lanes_by_due_time"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("dlq", "source", "key_hash"), name="one_lane_per_key"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("due_at__isnull", False), ("phase__in", ["ready", "leased"])),
                            models.Q(models.Q(("phase__in", ["ready", "leased"]), _negated=True), ("due_at", None)),
                            _connector="OR",
                        ),
                        name="ready_or_leased_lane_has_due_time",
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
                        name="stopped_lane_has_person_and_reason",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Letter",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("public_id", models.UUIDField(default=uuid.uuid4, unique=True)),
                ("message_id", models.TextField()),
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
                ("attempts_before_release", models.IntegerField(db_default=0)),
                ("spared", models.IntegerField(db_default=0)),
                ("epoch", models.IntegerField(db_default=0)),
                ("planned", models.BooleanField(db_default=False)),
                ("blocked_reason", models.TextField(blank=True, db_default="")),
                ("ordering_key", models.TextField(blank=True, null=True)),
                ("key_hash", models.BinaryField(blank=True, null=True)),
                ("single", models.BooleanField(db_default=True)),
                ("sequence", models.TextField(blank=True, db_collation="C", null=True)),
                ("idempotency_key", models.TextField(blank=True, null=True)),
                ("body_hash", models.BinaryField()),
                ("size", models.IntegerField()),
                ("frees_lane", models.BooleanField(db_default=False)),
                ("presumed", models.BooleanField(db_default=False)),
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
                            ("erred", "erred: the rule could not be evaluated"),
                        ],
                        db_default="",
                    ),
                ),
                ("rulebook_version", models.BigIntegerField(db_default=0)),
                (
                    "reason",
                    models.TextField(
                        blank=True,
                        choices=[
                            ("attempts_spent", "All attempts that the DLQ allows have failed."),
                            ("refused", "The target refused it, and would refuse it again."),
                            ("too_large", "It is larger than the target accepts."),
                            ("unsendable", "The target does not allow its body or its attributes."),
                            ("no_ordering_key", "It has no ordering key, which the DLQ's settings require."),
                            ("no_sequence", "It has no sequence, which the DLQ's settings require."),
                            ("no_idempotency_key", "It has no idempotency key, which the DLQ's settings require."),
                            ("unreadable_body", "A key is read from its body, which is not readable JSON."),
                            ("unknown_source", "Its source queue is not known, and the DLQ names no other target."),
                            ("stale", "A later message of its ordering key was delivered before this one arrived."),
                            ("key_conflict", "Another body was delivered under the same idempotency key."),
                            ("equal_discarded", "A person discarded another message with the same idempotency key."),
                            ("possible_return", "It may be a redriven message that came back without its redrive id."),
                            ("received_too_often", "It was received more often than the DLQ's limit allows."),
                            ("quarantined", "A rule quarantined or discarded it."),
                            ("no_answer", "Its consumer did not report the outcome in time."),
                            ("expired", "It is a task message that has expired: a worker would discard it."),
                            ("part_of_group", "Its task is part of a group or chord, which may have ended already."),
                            ("unreadable_task", "It goes to Celery workers, and is not a readable task message."),
                            (
                                "payload_lost",
                                "Its payload cannot be decrypted. Restore it from a backup, or discard it.",
                            ),
                            ("unsupported_target", "Its source is of a kind that this service cannot send to."),
                            ("moved_by_aws", "AWS's native redrive took it out of the DLQ, and it has not come back."),
                            ("in_doubt", "It may have been sent after the backup from which PostgreSQL was restored."),
                        ],
                        db_default="",
                    ),
                ),
                ("detail", models.TextField(blank=True, db_default="")),
                ("released_by", models.TextField(blank=True, null=True)),
                ("first_sent_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("captured_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("grouped_at", models.DateTimeField(blank=True, null=True)),
                ("body_deleted_at", models.DateTimeField(blank=True, null=True)),
                ("assigned_to", models.TextField(blank=True, db_default="")),
                (
                    "dlq",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="letters",
                        to="reprocessing.deadletterqueue",
                    ),
                ),
                (
                    "duplicate_of",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="duplicates",
                        to="reprocessing.letter",
                    ),
                ),
                (
                    "group",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="letters",
                        to="reprocessing.failuregroup",
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
                    "rule",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="letters",
                        to="reprocessing.rule",
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
                    "source",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="reprocessing.source",
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
            ],
            options={
                "db_table": "redrive_letter",
                "permissions": [("export_letter", "Can export messages")],
                "indexes": [
                    models.Index(
                        models.F("lane"),
                        models.F("sequence"),
                        models.F("message_id"),
                        condition=models.Q(("frees_lane", False), ("state__in", ["waiting", "sending", "awaiting"])),
                        name="letters_by_lane_and_sequence",
                    ),
                    models.Index(
                        models.F("dlq"),
                        models.F("id"),
                        condition=models.Q(("state", "captured")),
                        name="captured_letters_by_dlq",
                    ),
                    models.Index(
                        models.F("dlq"),
                        models.F("id"),
                        condition=models.Q(("planned", False), ("state", "captured")),
                        name="unplaced_letters_by_dlq",
                    ),
                    models.Index(
                        models.F("source"),
                        models.F("key_hash"),
                        models.F("sequence"),
                        models.F("message_id"),
                        condition=models.Q(("planned", True), ("single", False), ("state", "captured")),
                        name="captured_letters_by_lane",
                    ),
                    models.Index(
                        models.F("lane"),
                        models.F("sequence"),
                        models.F("message_id"),
                        condition=models.Q(
                            ("single", False),
                            models.Q(("finished_at__isnull", False), ("frees_lane", True), _connector="OR"),
                        ),
                        name="ended_letters_by_lane",
                    ),
                    models.Index(
                        models.F("source"),
                        models.F("key_hash"),
                        models.F("sequence"),
                        models.F("message_id"),
                        condition=models.Q(("finished_at__isnull", False), ("lane", None), ("single", False)),
                        name="ended_letters_without_lane",
                    ),
                    models.Index(
                        models.F("run"),
                        models.F("state"),
                        condition=models.Q(("run__isnull", False)),
                        name="letters_by_run_and_state",
                    ),
                    models.Index(
                        models.F("dlq"),
                        models.F("finished_at"),
                        models.F("id"),
                        condition=models.Q(("state", "parked")),
                        name="parked_letters_by_dlq",
                    ),
                    models.Index(
                        models.F("finished_at"),
                        models.F("id"),
                        condition=models.Q(("state", "parked")),
                        name="parked_letters_by_time",
                    ),
                    models.Index(
                        models.F("assigned_to"),
                        models.F("finished_at"),
                        models.F("id"),
                        condition=models.Q(("state", "parked"), models.Q(("assigned_to", ""), _negated=True)),
                        name="parked_letters_by_assignee",
                    ),
                    models.Index(
                        models.F("dlq"),
                        models.F("state"),
                        models.F("first_sent_at"),
                        condition=models.Q(("finished_at", None), ("state", "parked"), _connector="OR"),
                        name="open_letters_by_state_and_age",
                    ),
                    models.Index(
                        models.F("dlq"),
                        models.F("state"),
                        models.F("id"),
                        condition=models.Q(("state__in", ["discarded", "duplicate"])),
                        name="discarded_and_duplicates",
                    ),
                    models.Index(
                        models.F("dlq"),
                        models.F("finished_at"),
                        models.F("id"),
                        condition=models.Q(
                            ("finished_at__isnull", False), models.Q(("state", "parked"), _negated=True)
                        ),
                        name="ended_letters_by_dlq_and_time",
                    ),
                    models.Index(
                        models.F("id"),
                        condition=models.Q(
                            ("planned", True),
                            ("state__in", ["captured", "waiting", "parked"]),
                            models.Q(
                                ("grouped_at", None), ("grouped_at__lt", models.F("finished_at")), _connector="OR"
                            ),
                        ),
                        name="letters_without_group",
                    ),
                    models.Index(
                        models.F("group"),
                        models.F("id"),
                        condition=models.Q(("group__isnull", False)),
                        name="letters_by_group",
                    ),
                    models.Index(
                        models.F("lane"), condition=models.Q(("state", "parked")), name="parked_letters_by_lane"
                    ),
                    models.Index(
                        models.F("rule"),
                        models.F("state"),
                        condition=models.Q(("rule__isnull", False)),
                        name="letters_by_rule",
                    ),
                    models.Index(
                        models.F("duplicate_of"),
                        condition=models.Q(("duplicate_of__isnull", False)),
                        name="duplicates_by_original",
                    ),
                    models.Index(
                        models.F("dlq"),
                        models.F("body_hash"),
                        condition=models.Q(
                            ("blocked_reason", "moved_by_aws"), ("reason", "moved_by_aws"), _connector="OR"
                        ),
                        name="letters_moved_by_aws",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("dlq", "message_id"), name="one_letter_per_message"),
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
                        name="queued_letter_has_lane_target_and_sequence",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "parked"), models.Q(("reason", ""), _negated=True)),
                            models.Q(models.Q(("state", "parked"), _negated=True), ("reason", "")),
                            _connector="OR",
                        ),
                        name="only_parked_letter_has_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("duplicate_of__isnull", False), ("state", "duplicate")),
                            models.Q(models.Q(("state", "duplicate"), _negated=True), ("duplicate_of", None)),
                            _connector="OR",
                        ),
                        name="only_duplicate_names_delivered_letter",
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
                        name="only_finished_letter_has_end_time",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("frees_lane", False), ("state", "awaiting"), _connector="OR"),
                        name="only_awaiting_letter_frees_lane",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("attempts__gte", 0), ("not_sent__gte", 0)),
                        name="attempt_counts_not_negative",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("spared__gte", 0),
                            (
                                "spared__lte",
                                django.db.models.expressions.CombinedExpression(
                                    models.F("attempts"), "-", models.F("attempts_before_release")
                                ),
                            ),
                        ),
                        name="outage_attempts_are_since_the_last_release",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("body_deleted_at", None),
                            ("state__in", ["delivered", "duplicate", "discarded"]),
                            _connector="OR",
                        ),
                        name="only_ended_letter_has_no_body",
                    ),
                ],
            },
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
                        to="reprocessing.letter",
                    ),
                ),
                ("body", models.BinaryField()),
                ("attributes", models.BinaryField()),
                ("system", models.JSONField()),
            ],
            options={
                "db_table": "redrive_payload",
                "permissions": [("view_payload", "Can view payloads"), ("reveal_payload", "Can reveal masked values")],
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="RestoreDoubt",
            fields=[
                (
                    "letter",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="doubt",
                        serialize=False,
                        to="reprocessing.letter",
                    ),
                ),
                ("receives", models.IntegerField(blank=True, null=True)),
                ("arrived", models.BooleanField(db_default=False)),
                ("came_back", models.IntegerField(blank=True, null=True)),
                (
                    "word",
                    models.TextField(
                        blank=True,
                        choices=[("delivered", "delivered"), ("parked", "parked for a person"), ("replay", "redrive")],
                        db_default="",
                    ),
                ),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "db_table": "redrive_restore_doubt",
                "default_permissions": (),
                "indexes": [
                    models.Index(models.F("letter"), condition=models.Q(("word", "")), name="undecided_restore_doubts")
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("decided_at", None), ("word", "")),
                            models.Q(models.Q(("word", ""), _negated=True), ("decided_at__isnull", False)),
                            _connector="OR",
                        ),
                        name="restore_decision_has_time",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ParkedLetter",
            fields=[],
            options={
                "proxy": True,
                "default_permissions": ("view", "release", "discard", "edit", "assign"),
                "indexes": [],
                "constraints": [],
            },
            bases=("reprocessing.letter",),
        ),
        migrations.CreateModel(
            name="ParkingQueueMessage",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "parking_event",
                    models.TextField(
                        choices=[
                            ("parked", "parked: send a copy to the parking queue"),
                            ("left", "left the parking lot: mark the copy in the parking queue as settled"),
                        ]
                    ),
                ),
                ("made_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("sent_at", models.DateTimeField(blank=True, null=True)),
                ("last_error", models.TextField(blank=True, db_default="")),
                (
                    "letter",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="notices", to="reprocessing.letter"
                    ),
                ),
                (
                    "dlq",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="reprocessing.deadletterqueue",
                    ),
                ),
            ],
            options={
                "db_table": "redrive_parking_queue_message",
                "indexes": [
                    models.Index(
                        models.F("dlq"),
                        models.F("id"),
                        condition=models.Q(("sent_at", None)),
                        name="unsent_parking_queue_messages",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Revision",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("no", models.IntegerField()),
                ("body", models.BinaryField()),
                ("attributes", models.BinaryField()),
                ("body_hash", models.BinaryField()),
                ("previous_body_hash", models.BinaryField()),
                ("size", models.IntegerField()),
                ("idempotency_key", models.TextField(blank=True, null=True)),
                ("by", models.TextField()),
                ("reason", models.TextField()),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "letter",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="revisions",
                        to="reprocessing.letter",
                    ),
                ),
            ],
            options={
                "db_table": "redrive_revision",
                "default_permissions": (),
                "indexes": [
                    models.Index(models.F("body_hash"), name="revisions_by_body_hash"),
                    models.Index(models.F("previous_body_hash"), name="revisions_by_previous_hash"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("letter", "no"), name="unique_revision_number_per_letter"),
                    models.CheckConstraint(condition=models.Q(("no__gte", 1)), name="revision_number_at_least_1"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("by", ""), _negated=True), models.Q(("reason", ""), _negated=True)
                        ),
                        name="revision_has_person_and_reason",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="HealthCheck",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.TextField(
                        choices=[
                            ("http", "http: a URL returns the expected status"),
                            ("alarm", "alarm: a CloudWatch alarm is OK"),
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
                (
                    "target",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="checks",
                        to="reprocessing.target",
                    ),
                ),
            ],
            options={
                "db_table": "redrive_health_check",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("target", "kind", "subject"), name="one_check_per_target_kind_and_subject"
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
                        name="check_has_fields_of_its_kind",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("every__gt", 0), ("max_age__gte", models.F("every")), ("max_age__lte", 1209600)
                        ),
                        name="check_repeats_before_max_age",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("verdict", "healthy"), _negated=True),
                            ("checked_at__isnull", False),
                            _connector="OR",
                        ),
                        name="healthy_check_has_time",
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
                ("key_space", models.TextField()),
                ("key_hash", models.BinaryField()),
                (
                    "state",
                    models.TextField(
                        choices=[
                            ("held", "held: a message with this key is being sent"),
                            ("free", "free: the message failed; another message with this key may be sent"),
                            ("delivered", "delivered: a message with this key was delivered"),
                            ("discarded", "discarded: a person discarded the message"),
                        ]
                    ),
                ),
                ("body_hash", models.BinaryField()),
                ("until", models.DateTimeField(blank=True, null=True)),
                (
                    "letter",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="claims", to="reprocessing.letter"
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
            ],
            options={
                "db_table": "redrive_claim",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "held"), _negated=True), ("until__isnull", False), _connector="OR"
                        ),
                        name="held_claim_has_end",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "act",
                    models.TextField(
                        choices=[
                            ("released", "released"),
                            ("discarded", "discarded"),
                            ("stopped", "stopped"),
                            ("resumed", "resumed"),
                            ("added", "added"),
                            ("changed", "changed"),
                            ("planned", "planned"),
                            ("started", "started"),
                            ("paused", "paused"),
                            ("aborted", "aborted"),
                            ("reset", "reset"),
                            ("restored", "restored to the parking lot"),
                            ("edited", "edited"),
                            ("revealed", "viewed the payload"),
                            ("exported", "exported"),
                            ("assigned", "assigned"),
                            ("noted", "noted"),
                            ("unlocked", "unlocked from the configuration file"),
                            ("requested", "requested an approval"),
                            ("approved", "approved"),
                            ("declined", "declined"),
                            ("expired", "approval expired"),
                            ("voided", "approval became void"),
                            ("acted_alone", "ACTED WITHOUT APPROVAL"),
                            ("erased", "erased"),
                            ("shredded", "shredded"),
                            ("rotated", "rotated payload keys"),
                        ]
                    ),
                ),
                ("by", models.TextField()),
                ("reason", models.TextField()),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("before", models.JSONField(default=dict)),
                ("after", models.JSONField(default=dict)),
                (
                    "operation",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reviews",
                        to="reprocessing.bulkaction",
                    ),
                ),
                (
                    "dlq",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="reviews",
                        to="reprocessing.deadletterqueue",
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
                        to="reprocessing.failuregroup",
                    ),
                ),
                (
                    "letter",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reviews",
                        to="reprocessing.letter",
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
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="reviews",
                        to="reprocessing.target",
                    ),
                ),
            ],
            options={
                "db_table": "redrive_audit_entry",
                "indexes": [
                    models.Index(models.F("letter"), models.F("at"), name="audit_entries_by_letter"),
                    models.Index(
                        models.F("group"),
                        models.F("id"),
                        condition=models.Q(("group__isnull", False)),
                        name="audit_entries_by_group",
                    ),
                    models.Index(
                        models.F("operation"),
                        models.F("id"),
                        condition=models.Q(("operation__isnull", False)),
                        name="audit_entries_by_bulk_action",
                    ),
                    models.Index(models.F("at"), models.F("id"), name="audit_entries_by_time"),
                    models.Index(models.F("act"), models.F("id"), name="audit_entries_by_act"),
                    models.Index(models.F("by"), models.F("id"), name="audit_entries_by_author"),
                    models.Index(
                        models.F("id"),
                        condition=models.Q(("group", None), ("letter", None), ("run", None)),
                        name="audit_entries_about_settings",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("by", ""), _negated=True), models.Q(("reason", ""), _negated=True)
                        ),
                        name="audit_entry_has_person_and_reason",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="TargetCheck",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("seen_at", models.DateTimeField()),
                ("took", models.FloatField(db_default=0.0)),
                ("empty", models.BooleanField(db_default=True)),
                ("idle_since", models.DateTimeField(blank=True, null=True)),
                (
                    "target",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="sightings", to="reprocessing.target"
                    ),
                ),
            ],
            options={
                "db_table": "redrive_target_check",
                "indexes": [
                    models.Index(
                        models.F("target"),
                        models.OrderBy(models.F("seen_at"), descending=True),
                        name="target_checks_newest_first",
                    ),
                    models.Index(
                        models.F("target"),
                        models.OrderBy(models.F("seen_at"), descending=True),
                        condition=models.Q(("idle_since__isnull", False)),
                        name="target_checks_while_idle",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="TaskHints",
            fields=[
                ("id", models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("width", models.IntegerField()),
                ("lifetime", models.FloatField()),
                ("swept_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("purged_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "db_table": "redrive_task_hints",
                "constraints": [models.CheckConstraint(condition=models.Q(("id", 1)), name="one_task_hints_row")],
            },
        ),
        migrations.CreateModel(
            name="TickCount",
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
                "db_table": "redrive_tick_count",
                "default_permissions": (),
                "constraints": [models.CheckConstraint(condition=models.Q(("id", 1)), name="one_tick_count_row")],
            },
        ),
        migrations.CreateModel(
            name="Wave",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("no", models.IntegerField()),
                ("size", models.IntegerField(blank=True, null=True)),
                ("opened_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("settled_at", models.DateTimeField(blank=True, null=True)),
                ("sent", models.IntegerField(blank=True, null=True)),
                ("failed", models.IntegerField(blank=True, null=True)),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="wave_history",
                        to="reprocessing.run",
                    ),
                ),
            ],
            options={
                "db_table": "redrive_wave",
                "constraints": [
                    models.UniqueConstraint(fields=("run", "no"), name="unique_wave_number_per_run"),
                    models.UniqueConstraint(
                        condition=models.Q(("settled_at", None)), fields=("run",), name="one_open_wave_per_run"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("size", None), ("size__gte", 1), _connector="OR"),
                        name="wave_size_at_least_1",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("failed", None), ("sent", None), ("settled_at", None)),
                            models.Q(
                                ("failed__gte", 0),
                                ("failed__isnull", False),
                                ("sent__gte", models.F("failed")),
                                ("sent__isnull", False),
                                ("settled_at__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="only_settled_wave_has_result",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Attempt",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
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
                ("breaker_epoch", models.BigIntegerField(db_default=0)),
                ("counts_as_failure", models.BooleanField(blank=True, null=True)),
                ("spared", models.BooleanField(db_default=False)),
                (
                    "breaker",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="reprocessing.breaker",
                    ),
                ),
                (
                    "lane",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="reprocessing.lane",
                    ),
                ),
                (
                    "letter",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="history",
                        to="reprocessing.letter",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="attempts",
                        to="reprocessing.run",
                    ),
                ),
                (
                    "target",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="reprocessing.target",
                    ),
                ),
                (
                    "wave",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="reprocessing.wave",
                    ),
                ),
            ],
            options={
                "db_table": "redrive_attempt",
                "indexes": [
                    models.Index(
                        models.F("sent_message_id"),
                        condition=models.Q(("sent_message_id__isnull", False)),
                        name="attempts_by_sent_message_id",
                    ),
                    models.Index(
                        models.F("target"),
                        models.F("lane"),
                        condition=models.Q(("closed_at", None)),
                        name="open_attempts_by_target",
                    ),
                    models.Index(
                        models.F("letter"),
                        condition=models.Q(("outcome", "unknown"), ("returned_at", None)),
                        name="unknown_attempts_by_letter",
                    ),
                    models.Index(models.F("run"), name="attempts_by_run"),
                    models.Index(models.F("breaker"), models.F("id"), name="attempts_by_breaker"),
                    models.Index(
                        models.F("wave"),
                        models.F("id"),
                        condition=models.Q(("wave__isnull", False)),
                        name="attempts_by_wave",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("letter", "no"), name="unique_attempt_number_per_letter"),
                    models.UniqueConstraint(
                        condition=models.Q(("holds_lane", True)),
                        fields=("lane",),
                        name="one_lane_holding_attempt_per_lane",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("closed_at", None), ("outcome", None)),
                            models.Q(("closed_at__isnull", False), ("outcome__isnull", False)),
                            _connector="OR",
                        ),
                        name="closed_attempt_has_outcome",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("holds_lane", False), ("closed_at", None), _connector="OR"),
                        name="closed_attempt_holds_no_lane",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="DlqCopy",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "dlq_id", "message_id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("message_id", models.TextField()),
                (
                    "state",
                    models.TextField(
                        choices=[
                            ("held", "held: invisible in the DLQ until the message is finished"),
                            ("delete", "to be deleted"),
                            ("gone", "deleted"),
                        ]
                    ),
                ),
                ("handle", models.TextField()),
                ("visible_until", models.DateTimeField()),
                ("extended", models.BooleanField(db_default=False)),
                ("receives", models.IntegerField(db_default=1)),
                ("gone_at", models.DateTimeField(blank=True, null=True)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                (
                    "attempt",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="reprocessing.attempt",
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
                (
                    "letter",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="copies", to="reprocessing.letter"
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "copies in DLQs",
                "db_table": "redrive_dlq_copy",
                "indexes": [
                    models.Index(
                        models.F("dlq"),
                        models.F("message_id"),
                        condition=models.Q(("state", "delete")),
                        name="copies_to_delete",
                    ),
                    models.Index(
                        models.F("dlq"),
                        models.F("visible_until"),
                        condition=models.Q(("state", "held")),
                        include=["extended"],
                        name="held_copies_by_visibility",
                    ),
                    models.Index(
                        models.F("dlq"),
                        models.F("expires_at"),
                        condition=models.Q(("state", "held")),
                        name="held_copies_by_expiry",
                    ),
                    models.Index(
                        models.F("dlq"),
                        models.F("gone_at"),
                        condition=models.Q(("state", "gone")),
                        name="gone_copies_by_dlq_and_time",
                    ),
                    models.Index(
                        models.F("attempt"), condition=models.Q(("attempt__isnull", False)), name="copies_by_attempt"
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("gone_at__isnull", False), ("state", "gone")),
                            models.Q(models.Q(("state", "gone"), _negated=True), ("gone_at", None)),
                            _connector="OR",
                        ),
                        name="gone_copy_has_time",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="DlqSample",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("taken_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("uncaptured", models.BigIntegerField()),
                ("captured", models.BigIntegerField()),
                ("unfinished", models.BigIntegerField()),
                (
                    "dlq",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.CASCADE, to="reprocessing.deadletterqueue"
                    ),
                ),
            ],
            options={
                "db_table": "redrive_dlq_sample",
                "default_permissions": (),
                "indexes": [models.Index(models.F("dlq"), models.F("taken_at"), name="dlq_samples_by_time")],
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("uncaptured__gte", 0)), name="dlq_sample_not_negative")
                ],
            },
        ),
        migrations.CreateModel(
            name="DiscoveryScope",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("role_arn", models.TextField(blank=True, default="")),
                ("region", models.TextField()),
                ("prefix", models.TextField(blank=True, default="")),
                ("tags", models.JSONField(blank=True, default=dict)),
                ("daily", models.BooleanField(default=False)),
                ("next_at", models.DateTimeField(blank=True, null=True)),
                (
                    "stage",
                    models.TextField(
                        blank=True,
                        choices=[
                            ("queues", "queues"),
                            ("functions", "Lambda functions"),
                            ("subscriptions", "SNS subscriptions"),
                            ("rules", "EventBridge rules"),
                            ("named", "other queues that sources name"),
                        ],
                        default="",
                    ),
                ),
                ("marker", models.TextField(blank=True, default="")),
                ("began_at", models.DateTimeField(blank=True, null=True)),
                ("scanned_at", models.DateTimeField(blank=True, null=True)),
                ("unread", models.JSONField(blank=True, default=list)),
                ("leased_until", models.DateTimeField(blank=True, null=True)),
                ("fence", models.BigIntegerField(default=0)),
            ],
            options={
                "db_table": "redrive_discovery_scope",
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("role_arn", "region", "prefix", "tags"), name="one_discovery_per_role_region_and_filter"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("region", ""), _negated=True), name="discovery_has_region"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("marker", ""), ("stage", "")),
                            models.Q(
                                ("began_at__isnull", False),
                                ("stage__in", ["queues", "functions", "subscriptions", "rules", "named"]),
                            ),
                            _connector="OR",
                        ),
                        name="open_scan_has_stage_and_start",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="DiscoveredSource",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("dlq_arn", models.TextField()),
                ("source_arn", models.TextField()),
                ("through", models.TextField(blank=True, default="")),
                (
                    "kind",
                    models.TextField(
                        choices=[
                            ("queue", "queue"),
                            ("function", "function"),
                            ("subscription", "subscription"),
                            ("rule", "rule"),
                        ]
                    ),
                ),
                ("seen_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "scope",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sources",
                        to="reprocessing.discoveryscope",
                    ),
                ),
            ],
            options={
                "db_table": "redrive_discovered_source",
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("dlq_arn", "source_arn", "through"), name="one_row_per_dlq_source_and_rule"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["queue", "function", "subscription", "rule"])),
                        name="discovered_source_kind_is_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("through", ""), ("kind", "rule"), _connector="OR"),
                        name="only_rules_have_targets",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="DiscoveredQueue",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("arn", models.TextField(unique=True)),
                ("url", models.TextField(blank=True, default="")),
                ("tags", models.JSONField(blank=True, null=True)),
                ("retention", models.IntegerField(blank=True, null=True)),
                ("visible", models.BigIntegerField(blank=True, null=True)),
                ("in_flight", models.BigIntegerField(blank=True, null=True)),
                ("oldest_age", models.FloatField(blank=True, null=True)),
                ("read_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("last_error", models.TextField(blank=True, default="")),
                ("reported_at", models.DateTimeField(blank=True, null=True)),
                ("ignored_at", models.DateTimeField(blank=True, null=True)),
                ("ignored_by", models.TextField(blank=True, default="")),
                ("ignore_reason", models.TextField(blank=True, default="")),
                (
                    "scope",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="queues",
                        to="reprocessing.discoveryscope",
                    ),
                ),
            ],
            options={
                "db_table": "redrive_discovered_queue",
                "default_permissions": ("view",),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("arn__startswith", "arn:")), name="discovered_queue_has_arn"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("in_flight__isnull", False),
                                ("last_error", ""),
                                ("retention__isnull", False),
                                ("visible__isnull", False),
                            ),
                            models.Q(
                                models.Q(("last_error", ""), _negated=True),
                                ("in_flight", None),
                                ("oldest_age", None),
                                ("retention", None),
                                ("visible", None),
                            ),
                            _connector="OR",
                        ),
                        name="discovered_queue_was_read_or_has_error",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("ignore_reason", ""), ("ignored_at", None), ("ignored_by", "")),
                            models.Q(
                                ("ignored_at__isnull", False),
                                models.Q(("ignored_by", ""), _negated=True),
                                models.Q(("ignore_reason", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="ignored_queue_has_person_and_reason",
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="letter",
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
        migrations.AddIndex(
            model_name="letter",
            index=models.Index(
                models.F("revision"),
                condition=models.Q(("revision__isnull", False)),
                name="edited_letters_by_revision",
            ),
        ),
        migrations.AddField(
            model_name="deadletterqueue",
            name="default_source",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="default_of",
                to="reprocessing.source",
            ),
        ),
        migrations.CreateModel(
            name="Approval",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "action",
                    models.TextField(
                        choices=[
                            ("release", "release"),
                            ("discard", "discard"),
                            ("restore", "restore"),
                            ("edit", "edit"),
                            ("start_run", "start_run"),
                            ("resume_run", "resume_run"),
                            ("reopen_run", "reopen_run"),
                            ("save_rule", "save_rule"),
                            ("switch_rule", "switch_rule"),
                            ("remove_rule", "remove_rule"),
                            ("change_settings", "change_settings"),
                            ("apply_configuration", "apply_configuration"),
                        ]
                    ),
                ),
                ("title", models.TextField()),
                ("arguments", models.JSONField(default=dict)),
                (
                    "letters",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), blank=True, default=list, size=None
                    ),
                ),
                ("body", models.BinaryField(blank=True, null=True)),
                ("attributes", models.BinaryField(blank=True, null=True)),
                ("stamp", models.BinaryField()),
                ("digest", models.BinaryField()),
                (
                    "dlq_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), blank=True, default=list, size=None
                    ),
                ),
                ("messages", models.IntegerField(blank=True, null=True)),
                ("preview", models.JSONField(default=list)),
                ("by", models.TextField()),
                ("by_key", models.TextField()),
                ("reason", models.TextField()),
                ("asked_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("expires_at", models.DateTimeField()),
                (
                    "state",
                    models.TextField(
                        choices=[
                            ("open", "open"),
                            ("approved", "approved and done"),
                            ("declined", "declined"),
                            ("expired", "expired: nothing was done"),
                            ("void", "void: something changed, nothing was done"),
                            ("alone", "done without approval"),
                        ],
                        db_default="open",
                    ),
                ),
                ("decided_by", models.TextField(blank=True, db_default="")),
                ("decided_key", models.TextField(blank=True, db_default="")),
                ("decision_reason", models.TextField(blank=True, db_default="")),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("used_at", models.DateTimeField(blank=True, null=True)),
                ("outcome", models.TextField(blank=True, db_default="")),
            ],
            options={
                "db_table": "redrive_approval",
                "permissions": [("act_alone", "Can act without the second person who is needed")],
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(models.F("expires_at"), condition=models.Q(("state", "open")), name="open_approvals")
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("by_key", ""), _negated=True), models.Q(("reason", ""), _negated=True)
                        ),
                        name="approval_has_person_and_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state__in", ["approved", "declined", "alone"]), _negated=True),
                            models.Q(
                                models.Q(("decided_key", ""), _negated=True),
                                models.Q(("decision_reason", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="approval_decision_has_person_and_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "approved"), _negated=True),
                            models.Q(("decided_key", models.F("by_key")), _negated=True),
                            _connector="OR",
                        ),
                        name="approver_is_not_the_requester",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("ended_at", None), ("state", "open")),
                            models.Q(models.Q(("state", "open"), _negated=True), ("ended_at__isnull", False)),
                            _connector="OR",
                        ),
                        name="only_ended_approval_has_end_time",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state", "open"), models.Q(("attributes", None), ("body", None)), _connector="OR"
                        ),
                        name="only_open_approval_keeps_message",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("used_at", None), ("state__in", ["approved", "alone"]), _connector="OR"),
                        name="only_approved_action_is_done",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ApprovalDefault",
            fields=[
                ("name", models.TextField(default="all", primary_key=True, serialize=False)),
                ("above", models.PositiveIntegerField()),
            ],
            options={
                "db_table": "redrive_approval_default",
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("name", "all")), name="one_approval_default")
                ],
            },
        ),
        migrations.CreateModel(
            name="UnapprovedAction",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("by_key", models.TextField()),
                ("messages", models.IntegerField()),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "dlq",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="reprocessing.deadletterqueue",
                    ),
                ),
            ],
            options={
                "db_table": "redrive_unapproved_action",
                "default_permissions": (),
                "indexes": [
                    models.Index(
                        models.F("dlq"), models.F("by_key"), models.F("at"), name="unapproved_actions_by_person"
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("messages__gte", 1)), name="unapproved_action_has_messages"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ApiToken",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.SlugField(max_length=100, unique=True)),
                ("token_hash", models.BinaryField(unique=True)),
                ("scopes", models.JSONField(default=list)),
                ("added_by", models.TextField()),
                ("added_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
                ("reads", models.BigIntegerField(db_default=0)),
                (
                    "teams",
                    models.ManyToManyField(
                        blank=True, db_table="redrive_api_token_team", related_name="api_tokens", to="auth.group"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="api_tokens",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "API token",
                "db_table": "redrive_api_token",
                "default_permissions": ("view", "add", "change"),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("added_by", ""), _negated=True), name="api_token_has_author"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("scopes", []), _negated=True), name="api_token_has_scopes"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ApiCall",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.TextField()),
                ("request_hash", models.BinaryField()),
                ("made_at", models.DateTimeField()),
                ("leased_until", models.DateTimeField(blank=True, null=True)),
                ("status", models.IntegerField(blank=True, null=True)),
                ("answer", models.BinaryField(blank=True, null=True)),
                (
                    "token",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="calls",
                        to="reprocessing.apitoken",
                    ),
                ),
            ],
            options={
                "db_table": "redrive_api_call",
                "default_permissions": (),
                "indexes": [models.Index(models.F("made_at"), name="api_calls_by_time")],
                "constraints": [
                    models.UniqueConstraint(fields=("token", "key"), name="one_api_call_per_idempotency_key"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("answer", None), ("leased_until__isnull", False), ("status", None)),
                            models.Q(("answer__isnull", False), ("leased_until", None), ("status__isnull", False)),
                            _connector="OR",
                        ),
                        name="api_call_is_answered_or_leased",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SearchEntry",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "letter_id", "name", "value", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("dlq_id", models.BigIntegerField()),
                ("name", models.TextField(db_collation="C")),
                ("value", models.TextField(db_collation="C")),
                ("masked", models.BooleanField()),
                (
                    "letter",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="search_entries",
                        to="reprocessing.letter",
                    ),
                ),
            ],
            options={
                "db_table": "redrive_search_entry",
                "default_permissions": (),
                "indexes": [
                    models.Index(
                        fields=["name", "value", "letter"], include=("dlq_id", "masked"), name="search_entries_by_value"
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("value", ""), _negated=True),
                            django.db.models.lookups.LessThanOrEqual(
                                django.db.models.functions.text.Length("value"), 200
                            ),
                        ),
                        name="search_entry_has_1_to_200_characters",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="SavedFilter",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.TextField()),
                ("filter", models.JSONField()),
                ("saved_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="auth.group",
                    ),
                ),
            ],
            options={
                "db_table": "redrive_saved_filter",
                "default_permissions": ("delete",),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("name", ""), _negated=True), name="saved_filter_has_name"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("team", None)),
                        fields=("owner", "name"),
                        name="one_saved_filter_per_owner_and_name",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("team__isnull", False)),
                        fields=("team", "name"),
                        name="one_saved_filter_per_team_and_name",
                    ),
                ],
            },
        ),
        RunDeferredSql(migrations.RunSQL.noop, migrations.RunSQL.noop),
    ]
