from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reprocessing", "0005_looks_at_moves_by_aws")]
    operations = [
        migrations.AddField(
            model_name="deadletterqueue", name="swept_through", field=models.DateTimeField(blank=True, null=True)
        ),
        migrations.AddIndex(
            model_name="lane",
            index=models.Index(
                models.F("hinted_until"),
                condition=models.Q(("hinted_until__isnull", False), ("phase", "ready")),
                name="lanes_that_were_hinted_at",
            ),
        ),
    ]
