from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reprocessing", "0018_an_edit_is_no_failure")]
    operations = [
        migrations.AddField(model_name="sighting", name="took", field=models.FloatField(db_default=0.0)),
        migrations.AddIndex(
            model_name="deadletter",
            index=models.Index(
                models.F("dlq"),
                models.F("state"),
                models.F("id"),
                condition=models.Q(("state__in", ["discarded", "duplicate"])),
                name="letters_that_were_let_go",
            ),
        ),
        migrations.AddIndex(
            model_name="lane",
            index=models.Index(
                models.F("breaker"),
                models.F("run"),
                models.F("due_at"),
                condition=models.Q(("breaker__isnull", False), ("phase", "ready")),
                name="lanes_behind_a_breaker",
            ),
        ),
    ]
