from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reprocessing", "0006_hints_and_sweeps_by_index")]
    operations = [
        migrations.AddField(model_name="origin", name="removed_at", field=models.DateTimeField(blank=True, null=True)),
    ]
