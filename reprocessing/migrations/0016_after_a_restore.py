import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("reprocessing", "0015_a_dlq_is_aws_s_or_ours"),
    ]

    operations = [
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
            },
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
            },
        ),
        migrations.RemoveConstraint(
            model_name="halt",
            name="there_is_one_halt",
        ),
        migrations.AddField(
            model_name="halt",
            name="restored_to",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AlterField(
            model_name="deadletter",
            name="reason",
            field=models.TextField(
                blank=True,
                choices=[
                    ("attempts_spent", "Every attempt the dlq allows has failed."),
                    ("refused", "The target refused it in a way that another attempt would not change."),
                    ("too_large", "It is larger than the target takes."),
                    ("unsendable", "The target's rules forbid its body or its attributes."),
                    ("no_ordering_key", "It lacks the ordering key that the dlq names, so its place is not known."),
                    ("no_sequence", "It lacks the sequence that the dlq names, so its place in its lane is not known."),
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
                    ("unsupported_target", "What failed to take it is of a kind that cannot be reached from here."),
                    (
                        "moved_by_aws",
                        "AWS was told to move its message out of the dlq, and it has not come back since.",
                    ),
                    ("in_doubt", "PostgreSQL was restored from a backup, and whether it was sent since is not known."),
                ],
                db_default="",
            ),
        ),
        migrations.AddConstraint(
            model_name="halt",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("id", 1), ("restored_to", None)),
                    models.Q(("id", 2), ("restored_to__isnull", False)),
                    _connector="OR",
                ),
                name="there_is_one_halt",
            ),
        ),
        migrations.AddIndex(
            model_name="doubt",
            index=models.Index(models.F("letter"), condition=models.Q(("word", "")), name="doubts_nobody_decided"),
        ),
        migrations.AddConstraint(
            model_name="doubt",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("decided_at", None), ("word", "")),
                    models.Q(models.Q(("word", ""), _negated=True), ("decided_at__isnull", False)),
                    _connector="OR",
                ),
                name="a_word_about_a_doubt_says_when",
            ),
        ),
        migrations.AddConstraint(
            model_name="tide",
            constraint=models.CheckConstraint(condition=models.Q(("id", 1)), name="there_is_one_tide"),
        ),
    ]
