from django.db import migrations, models

#: A flood is a small part of a table that has seen many: what is known of it must not wait for a tenth to change.
ANALYZED = ("redrive_letter", "redrive_lane", "redrive_attempt", "redrive_custody", "redrive_payload")


class Migration(migrations.Migration):
    dependencies = [
        ("reprocessing", "0016_after_a_restore"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="deadletter",
            name="letters_of_a_run",
        ),
        migrations.AddIndex(
            model_name="deadletter",
            index=models.Index(
                models.F("run"),
                models.F("state"),
                condition=models.Q(("run__isnull", False)),
                name="letters_of_a_run",
            ),
        ),
        migrations.RunSQL(
            [f"ALTER TABLE {table} SET (autovacuum_analyze_scale_factor = 0.02)" for table in ANALYZED],
            [f"ALTER TABLE {table} RESET (autovacuum_analyze_scale_factor)" for table in ANALYZED],
        ),
    ]
