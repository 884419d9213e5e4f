from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reprocessing", "0003_automatic_redrive_heals")]
    operations = [
        migrations.AddField(model_name="sighting", name="empty", field=models.BooleanField(db_default=True)),
        migrations.AddField(
            model_name="sighting", name="quiet_since", field=models.DateTimeField(blank=True, null=True)
        ),
        migrations.AddIndex(
            model_name="sighting",
            index=models.Index(
                models.F("target"),
                models.OrderBy(models.F("seen_at"), descending=True),
                condition=models.Q(("quiet_since__isnull", False)),
                name="sightings_of_emptiness",
            ),
        ),
    ]
