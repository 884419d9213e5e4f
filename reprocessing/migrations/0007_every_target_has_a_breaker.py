from django.db import migrations

# Whoever makes a target makes its breaker: without one nothing could be said of it, and nothing would be sent.
BREAKERS = """
CREATE FUNCTION redrive_target_gets_a_breaker() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO redrive_breaker (target_id) VALUES (NEW.id);
    RETURN NULL;
END $$;
CREATE TRIGGER target_gets_a_breaker AFTER INSERT ON redrive_target
    FOR EACH ROW EXECUTE FUNCTION redrive_target_gets_a_breaker();
INSERT INTO redrive_breaker (target_id) SELECT id FROM redrive_target ORDER BY id;
"""

# As before, with what an attempt knows since: breaker and wave it was sent under, and what it says of the target.
WRITE_ONCE = """
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
       OR (OLD.ill IS NOT NULL AND NEW.ill IS DISTINCT FROM OLD.ill)
       OR (NEW.holds_lane AND NOT OLD.holds_lane)
    THEN
        RAISE EXCEPTION 'attempt % is history, and history is not rewritten', OLD.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
"""

AS_BEFORE = """
CREATE OR REPLACE FUNCTION redrive_attempts_are_written_once() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.id, NEW.letter_id, NEW.lane_id, NEW.target_id, NEW.run_id, NEW.no, NEW.epoch, NEW.fence, NEW.opened_at)
        IS DISTINCT FROM
       (OLD.id, OLD.letter_id, OLD.lane_id, OLD.target_id, OLD.run_id, OLD.no, OLD.epoch, OLD.fence, OLD.opened_at)
       OR (OLD.taken_at IS NOT NULL AND NEW.taken_at IS DISTINCT FROM OLD.taken_at)
       OR (OLD.deadline IS NOT NULL AND NEW.deadline IS DISTINCT FROM OLD.deadline)
       OR (OLD.sent_message_id IS NOT NULL AND NEW.sent_message_id IS DISTINCT FROM OLD.sent_message_id)
       OR (OLD.outcome IS NOT NULL AND NEW.outcome IS DISTINCT FROM OLD.outcome)
       OR (OLD.detail IS NOT NULL AND NEW.detail IS DISTINCT FROM OLD.detail)
       OR (OLD.closed_at IS NOT NULL AND NEW.closed_at IS DISTINCT FROM OLD.closed_at)
       OR (OLD.returned_at IS NOT NULL AND NEW.returned_at IS DISTINCT FROM OLD.returned_at)
       OR (NEW.holds_lane AND NOT OLD.holds_lane)
    THEN
        RAISE EXCEPTION 'attempt % is history, and history is not rewritten', OLD.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("reprocessing", "0006_brakes_and_rules")]
    operations = [
        migrations.RunSQL(
            BREAKERS,
            "DROP TRIGGER target_gets_a_breaker ON redrive_target; DROP FUNCTION redrive_target_gets_a_breaker();"
            "DELETE FROM redrive_breaker",
        ),
        migrations.RunSQL(WRITE_ONCE, AS_BEFORE),
    ]
