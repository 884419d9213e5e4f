"""A queue of Celery workers is asked for its redrive policy."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("reprocessing", "0009_what_worked_may_have_failed"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="healthcheck",
            name="a_check_says_what_it_asks",
        ),
        migrations.AlterField(
            model_name="healthcheck",
            name="kind",
            field=models.TextField(
                choices=[
                    ("http", "http: an address answers as expected"),
                    ("alarm", "alarm: a CloudWatch alarm is in OK"),
                    ("depth", "depth: the target queue holds at most so many messages"),
                    ("age", "age: the target queue's oldest message is at most so many seconds old"),
                    ("policy", "policy: the target queue has a redrive policy"),
                ]
            ),
        ),
        migrations.AddConstraint(
            model_name="healthcheck",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("ceiling", None), ("kind__in", ["http", "alarm"]), models.Q(("subject", ""), _negated=True)
                    ),
                    models.Q(
                        ("ceiling__gte", 0), ("ceiling__isnull", False), ("kind__in", ["depth", "age"]), ("subject", "")
                    ),
                    models.Q(("ceiling", None), ("kind", "policy"), ("subject", "")),
                    _connector="OR",
                ),
                name="a_check_says_what_it_asks",
            ),
        ),
    ]
