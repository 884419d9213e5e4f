from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reprocessing", "0004_looks_at_empty_targets")]
    operations = [
        migrations.AddField(model_name="origin", name="removed_at", field=models.DateTimeField(blank=True, null=True)),
    ]
