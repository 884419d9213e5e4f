from django.db import migrations, models

# What letters came to before anybody summed it up. CloudWatch is told of what comes from now on.
BEGUN = """
INSERT INTO redrive_metric (name, place, part, value, told)
SELECT 'redrive_came_to', dlq_id, what, sum(n), sum(n) FROM redrive_flow GROUP BY 2, 3;
ALTER TABLE redrive_metric SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
"""


class Migration(migrations.Migration):
    dependencies = [
        ("reprocessing", "0013_kept_counts_and_acts"),
    ]

    operations = [
        migrations.CreateModel(
            name="Metric",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.TextField()),
                ("place", models.BigIntegerField()),
                ("part", models.TextField()),
                ("value", models.FloatField()),
                ("told", models.FloatField(db_default=0)),
            ],
            options={
                "db_table": "redrive_metric",
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("name", "place", "part"), name="a_metric_is_summed_once"),
                    models.CheckConstraint(condition=models.Q(("value__gte", 0)), name="a_sum_only_grows"),
                ],
            },
        ),
        migrations.RunSQL(BEGUN, migrations.RunSQL.noop),
    ]
