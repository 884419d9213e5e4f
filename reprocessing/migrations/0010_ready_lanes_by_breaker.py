from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reprocessing", "0009_dlqs_are_noted")]
    operations = [
        migrations.AddIndex(
            model_name="lane",
            index=models.Index(
                models.F("run"),
                models.F("breaker"),
                models.F("due_at"),
                condition=models.Q(("phase", "ready")),
                name="lanes_that_are_ready",
            ),
        ),
    ]
