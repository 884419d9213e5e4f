from importlib import import_module

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

# Keys are made at once, and not after the migration was recorded: see there.
keys_at_once = import_module("reprocessing.migrations.0001_the_tables").KeysAtOnce


class Migration(migrations.Migration):
    dependencies = [
        ("reprocessing", "0008_a_person_is_told"),
    ]

    operations = [
        migrations.AddField(
            model_name="deadletterqueue",
            name="uncaptured_since",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.CreateModel(
            name="DlqNote",
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
                "db_table": "redrive_dlq_note",
                "default_permissions": (),
                "indexes": [models.Index(models.F("dlq"), models.F("taken_at"), name="notes_of_a_dlq")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("uncaptured__gte", 0)), name="a_note_of_a_dlq_counts_upwards"
                    )
                ],
            },
        ),
        keys_at_once(migrations.RunSQL.noop, migrations.RunSQL.noop),
    ]
