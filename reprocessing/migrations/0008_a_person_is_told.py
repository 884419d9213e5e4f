from importlib import import_module

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

# Keys are made at once, and not after the migration was recorded: see there.
keys_at_once = import_module("reprocessing.migrations.0001_the_tables").KeysAtOnce


class Migration(migrations.Migration):
    dependencies = [
        ("reprocessing", "0007_an_origin_can_be_taken_away"),
    ]

    operations = [
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
                ("trouble", models.TextField(blank=True, db_default="")),
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
            },
        ),
        migrations.AddIndex(
            model_name="incident",
            index=models.Index(
                models.F("due_at"), condition=models.Q(("due_at__isnull", False)), name="incidents_to_be_told"
            ),
        ),
        migrations.AddIndex(
            model_name="incident",
            index=models.Index(
                models.F("ended_at"), condition=models.Q(("ended_at__isnull", False)), name="incidents_that_are_over"
            ),
        ),
        migrations.AddConstraint(
            model_name="incident",
            constraint=models.UniqueConstraint(
                condition=models.Q(("ended_at", None)),
                fields=("kind", "subject"),
                name="one_incident_is_open_for_each_kind_and_subject",
            ),
        ),
        migrations.AddConstraint(
            model_name="incident",
            constraint=models.CheckConstraint(
                condition=models.Q(models.Q(("kind", ""), _negated=True), models.Q(("subject", ""), _negated=True)),
                name="an_incident_says_what_happened_to_what",
            ),
        ),
        migrations.AddConstraint(
            model_name="incident",
            constraint=models.CheckConstraint(condition=models.Q(("times__gte", 1)), name="an_incident_was_announced"),
        ),
        migrations.AddConstraint(
            model_name="incident",
            constraint=models.CheckConstraint(
                condition=models.Q(("ended_at", None), ("ended_at__gte", models.F("opened_at")), _connector="OR"),
                name="an_incident_ends_after_its_beginning",
            ),
        ),
        migrations.AddConstraint(
            model_name="notificationroute",
            constraint=models.CheckConstraint(
                condition=models.Q(("destination", ""), _negated=True), name="a_route_names_its_destination"
            ),
        ),
        migrations.AddConstraint(
            model_name="notificationroute",
            constraint=models.CheckConstraint(
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
                        ],
                    )
                ),
                name="a_route_knows_its_events",
            ),
        ),
        migrations.AddConstraint(
            model_name="notificationroute",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("failures", 0), ("trouble", "")),
                    models.Q(("failures__gt", 0), models.Q(("trouble", ""), _negated=True)),
                    _connector="OR",
                ),
                name="a_destination_that_fails_says_why",
            ),
        ),
        migrations.AddIndex(
            model_name="notification",
            index=models.Index(
                models.F("route"),
                models.F("id"),
                condition=models.Q(("given_up_at", None), ("sent_at", None)),
                name="notifications_that_are_owed",
            ),
        ),
        migrations.AddIndex(
            model_name="notification",
            index=models.Index(
                models.F("route"),
                models.F("sent_at"),
                condition=models.Q(("sent_at__isnull", False)),
                name="notifications_sent",
            ),
        ),
        migrations.AddIndex(
            model_name="notification",
            index=models.Index(
                models.F("given_up_at"),
                condition=models.Q(("given_up_at__isnull", False)),
                name="notifications_given_up",
            ),
        ),
        migrations.AddConstraint(
            model_name="notification",
            constraint=models.UniqueConstraint(
                condition=models.Q(
                    models.Q(("phase", "reminded"), _negated=True),
                    models.Q(("given_up_at", None), ("sent_at", None)),
                    _connector="OR",
                ),
                fields=("incident", "route", "phase"),
                name="a_part_of_an_incident_is_told_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="notification",
            constraint=models.CheckConstraint(
                condition=models.Q(("sent_at", None), ("given_up_at", None), _connector="OR"),
                name="what_was_sent_is_not_given_up",
            ),
        ),
        keys_at_once(migrations.RunSQL.noop, migrations.RunSQL.noop),
    ]
