from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reprocessing", "0005_looks_at_moves_by_aws")]
    operations = [
        migrations.AddField(model_name="origin", name="removed_at", field=models.DateTimeField(blank=True, null=True)),
    ]
