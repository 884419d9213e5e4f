from django.db import migrations, models

# What was let in before comes within the bounds; nothing that it meant is lost, since no message lives any longer.
CLAMP = """
UPDATE redrive_dlq SET backoff_base = least(backoff_base, 1209600), backoff_cap = least(backoff_cap, 1209600),
       quiet_for = CASE WHEN quiet_for IS NOT NULL THEN least(greatest(quiet_for, 0), 1209600) END
 WHERE backoff_base > 1209600 OR backoff_cap > 1209600 OR quiet_for > 1209600 OR quiet_for < 0;
UPDATE redrive_target SET rate = least(greatest(rate, 0.001), 1000000)
 WHERE rate < 0.001 OR rate > 1000000;
UPDATE redrive_target SET burst = 1000000 WHERE burst > 1000000;
UPDATE redrive_target SET "window" = 1209600 WHERE "window" > 1209600;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("django_celery_beat", "0019_alter_periodictasks_options"),
        ("reprocessing", "0004_indexes_that_only_cost"),
    ]

    operations = [
        migrations.RunSQL(CLAMP, migrations.RunSQL.noop),
        migrations.RemoveConstraint(
            model_name="deadletterqueue",
            name="a_backoff_is_a_duration",
        ),
        migrations.RemoveConstraint(
            model_name="target",
            name="a_rate_is_above_zero_or_none",
        ),
        migrations.RemoveConstraint(
            model_name="target",
            name="a_burst_holds_one_letter",
        ),
        migrations.RemoveConstraint(
            model_name="target",
            name="a_window_is_a_duration",
        ),
        migrations.AddIndex(
            model_name="lane",
            index=models.Index(models.F("dlq"), condition=models.Q(("phase", "held")), name="lanes_that_are_held"),
        ),
        migrations.AddConstraint(
            model_name="deadletterqueue",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("backoff_base__gte", 0),
                    ("backoff_base__lte", 1209600),
                    ("backoff_cap__gte", 0),
                    ("backoff_cap__lte", 1209600),
                ),
                name="a_backoff_lasts_a_fortnight_at_most",
            ),
        ),
        migrations.AddConstraint(
            model_name="deadletterqueue",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("quiet_for", None), models.Q(("quiet_for__gte", 0), ("quiet_for__lte", 1209600)), _connector="OR"
                ),
                name="a_fresh_lane_rests_a_fortnight_at_most",
            ),
        ),
        migrations.AddConstraint(
            model_name="target",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("rate", None), models.Q(("rate__gte", 0.001), ("rate__lte", 1000000)), _connector="OR"
                ),
                name="a_rate_is_a_thousandth_to_a_million_or_none",
            ),
        ),
        migrations.AddConstraint(
            model_name="target",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("burst", None), models.Q(("burst__gte", 1), ("burst__lte", 1000000)), _connector="OR"
                ),
                name="a_burst_is_one_to_a_million",
            ),
        ),
        migrations.AddConstraint(
            model_name="target",
            constraint=models.CheckConstraint(
                condition=models.Q(("window__gte", 0), ("window__lte", 1209600)),
                name="a_window_lasts_a_fortnight_at_most",
            ),
        ),
    ]
