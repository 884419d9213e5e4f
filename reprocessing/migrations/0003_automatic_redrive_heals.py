import django.db.models.expressions
from django.db import migrations, models

# That an attempt does not count may be found out after it was closed; it is never taken back.
ATTEMPTS = """
CREATE OR REPLACE FUNCTION redrive_attempts_are_written_once() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.id, NEW.letter_id, NEW.lane_id, NEW.target_id, NEW.run_id, NEW.no, NEW.epoch, NEW.fence, NEW.opened_at,
        NEW.breaker_id, NEW.breaker_epoch, NEW.wave_id)
        IS DISTINCT FROM
       (OLD.id, OLD.letter_id, OLD.lane_id, OLD.target_id, OLD.run_id, OLD.no, OLD.epoch, OLD.fence, OLD.opened_at,
        OLD.breaker_id, OLD.breaker_epoch, OLD.wave_id)
       OR (OLD.taken_at IS NOT NULL AND NEW.taken_at IS DISTINCT FROM OLD.taken_at)
       OR (OLD.deadline IS NOT NULL AND NEW.deadline IS DISTINCT FROM OLD.deadline)
       OR (OLD.sent_message_id IS NOT NULL AND NEW.sent_message_id IS DISTINCT FROM OLD.sent_message_id)
       OR (OLD.outcome IS NOT NULL AND NEW.outcome IS DISTINCT FROM OLD.outcome)
       OR (OLD.detail IS NOT NULL AND NEW.detail IS DISTINCT FROM OLD.detail)
       OR (OLD.closed_at IS NOT NULL AND NEW.closed_at IS DISTINCT FROM OLD.closed_at)
       OR (OLD.returned_at IS NOT NULL AND NEW.returned_at IS DISTINCT FROM OLD.returned_at)
       OR (OLD.ill AND NEW.ill IS NOT TRUE) OR (OLD.ill IS NOT NULL AND NEW.ill IS NULL)
       OR (NEW.holds_lane AND NOT OLD.holds_lane) OR (OLD.spared AND NOT NEW.spared)
    THEN
        RAISE EXCEPTION 'attempt % is history, and history is not rewritten', OLD.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
"""
FORMERLY = """
CREATE OR REPLACE FUNCTION redrive_attempts_are_written_once() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.id, NEW.letter_id, NEW.lane_id, NEW.target_id, NEW.run_id, NEW.no, NEW.epoch, NEW.fence, NEW.opened_at,
        NEW.breaker_id, NEW.breaker_epoch, NEW.wave_id)
        IS DISTINCT FROM
       (OLD.id, OLD.letter_id, OLD.lane_id, OLD.target_id, OLD.run_id, OLD.no, OLD.epoch, OLD.fence, OLD.opened_at,
        OLD.breaker_id, OLD.breaker_epoch, OLD.wave_id)
       OR (OLD.taken_at IS NOT NULL AND NEW.taken_at IS DISTINCT FROM OLD.taken_at)
       OR (OLD.deadline IS NOT NULL AND NEW.deadline IS DISTINCT FROM OLD.deadline)
       OR (OLD.sent_message_id IS NOT NULL AND NEW.sent_message_id IS DISTINCT FROM OLD.sent_message_id)
       OR (OLD.outcome IS NOT NULL AND NEW.outcome IS DISTINCT FROM OLD.outcome)
       OR (OLD.detail IS NOT NULL AND NEW.detail IS DISTINCT FROM OLD.detail)
       OR (OLD.closed_at IS NOT NULL AND NEW.closed_at IS DISTINCT FROM OLD.closed_at)
       OR (OLD.returned_at IS NOT NULL AND NEW.returned_at IS DISTINCT FROM OLD.returned_at)
       OR (OLD.ill AND NEW.ill IS NOT TRUE) OR (OLD.ill IS NOT NULL AND NEW.ill IS NULL)
       OR (NEW.holds_lane AND NOT OLD.holds_lane)
    THEN
        RAISE EXCEPTION 'attempt % is history, and history is not rewritten', OLD.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("django_celery_beat", "0019_alter_periodictasks_options"),
        ("reprocessing", "0002_what_postgres_sees_to"),
    ]

    operations = [
        migrations.AddField(
            model_name="attempt",
            name="spared",
            field=models.BooleanField(db_default=False),
        ),
        migrations.AddField(
            model_name="breaker",
            name="failing_since",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="deadletter",
            name="spared",
            field=models.IntegerField(db_default=0),
        ),
        migrations.AddField(
            model_name="deadletterqueue",
            name="give_up_after",
            field=models.FloatField(blank=True, default=86400, null=True),
        ),
        migrations.AddConstraint(
            model_name="breaker",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("failing_since", None), models.Q(("state", "closed"), _negated=True), _connector="OR"
                ),
                name="a_closed_breaker_is_not_failing",
            ),
        ),
        migrations.AddConstraint(
            model_name="deadletter",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("spared__gte", 0),
                    (
                        "spared__lte",
                        django.db.models.expressions.CombinedExpression(
                            models.F("attempts"), "-", models.F("forgiven")
                        ),
                    ),
                ),
                name="spared_attempts_are_attempts_since_the_last_release",
            ),
        ),
        migrations.AddConstraint(
            model_name="deadletterqueue",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("give_up_after", None),
                    models.Q(("give_up_after__gte", 1), ("give_up_after__lte", 1209600)),
                    _connector="OR",
                ),
                name="automatic_redrive_gives_up_within_a_fortnight_or_never",
            ),
        ),
        migrations.RunSQL(ATTEMPTS, FORMERLY),
    ]
