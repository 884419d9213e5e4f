"""When AWS was asked last whether it moves messages of a DLQ by itself, and why it did not say."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reprocessing", "0004_looks_at_empty_targets")]
    operations = [
        migrations.AddField(
            model_name="deadletterqueue", name="native_known_at", field=models.DateTimeField(blank=True, null=True)
        ),
        migrations.AddField(
            model_name="deadletterqueue",
            name="native_unknown",
            field=models.TextField(blank=True, db_default="", default=""),
        ),
    ]
