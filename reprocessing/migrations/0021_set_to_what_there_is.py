from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reprocessing", "0020_what_aws_moved_of_what_waits")]
    operations = [
        migrations.AddConstraint(
            model_name="deadletterqueue",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("backoff_jitter__in", ["full", "none"]),
                    ("delete_when__in", ["terminal", "captured"]),
                    ("missing_key__in", ["park", "lane"]),
                    ("mode__in", ["observe", "manual", "automatic"]),
                    ("parked_head__in", ["aside", "hold"]),
                    ("stale__in", ["park", "deliver"]),
                ),
                name="a_dlq_is_set_to_what_there_is",
            ),
        ),
        migrations.AddConstraint(
            model_name="target",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("advance__in", ["accepted", "settled"]),
                    ("kind__in", ["sqs", "celery", "http", "lambda", "topic", "bus"]),
                    ("proof__in", ["accepted", "absence", "acknowledged"]),
                ),
                name="a_target_is_set_to_what_there_is",
            ),
        ),
    ]
