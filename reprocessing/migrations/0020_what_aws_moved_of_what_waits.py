from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reprocessing", "0019_few_of_many")]
    operations = [
        migrations.AddField(
            model_name="deadletterqueue", name="let_go_at", field=models.DateTimeField(blank=True, null=True)
        ),
    ]
