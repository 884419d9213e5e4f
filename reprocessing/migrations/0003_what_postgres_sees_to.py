from django.db import migrations

# One clock for leases, deadlines and due times: the database's. Tests drive it by replacing this function.
NOW = """
CREATE FUNCTION redrive_now() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE AS 'SELECT clock_timestamp()'
"""

# Fences rise for ever, also past the deletion of the lanes that carried them.
FENCE = "CREATE SEQUENCE redrive_fence"

# History is never rewritten: a column of an attempt is written once; one that holds no lane never takes one again.
WRITE_ONCE = """
CREATE FUNCTION redrive_attempts_are_written_once() RETURNS trigger LANGUAGE plpgsql AS $$
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
CREATE TRIGGER attempts_are_written_once BEFORE UPDATE ON redrive_attempt
    FOR EACH ROW EXECUTE FUNCTION redrive_attempts_are_written_once();
"""

# A letter's bytes are sacred; they may be purged with their letter, never changed.
IMMUTABLE = """
CREATE FUNCTION redrive_payloads_never_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the payload of letter % was captured, and captured bytes never change', OLD.letter_id
        USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER payloads_never_change BEFORE UPDATE ON redrive_payload
    FOR EACH ROW EXECUTE FUNCTION redrive_payloads_never_change();
"""

# Whoever parks a letter, or moves it out of the parking lot: the dlq's SQS parking queue hears of it.
NOTICES = """
CREATE FUNCTION redrive_parking_is_noticed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO redrive_notice (letter_id, news, made_at, trouble)
    SELECT NEW.id, CASE NEW.state WHEN 'parked' THEN 'parked' ELSE 'left' END, clock_timestamp(), ''
      FROM redrive_dlq d WHERE d.id = NEW.dlq_id AND d.parking_url <> '';
    RETURN NULL;
END $$;
CREATE TRIGGER parking_is_noticed AFTER UPDATE OF state ON redrive_letter FOR EACH ROW
    WHEN ((OLD.state = 'parked') <> (NEW.state = 'parked')) EXECUTE FUNCTION redrive_parking_is_noticed();
"""

# Rows that change often get room beside themselves; bodies are not compressed, they are read whole.
ROOM = """
ALTER TABLE redrive_letter SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE redrive_lane SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE redrive_attempt SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE redrive_custody SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE redrive_payload ALTER COLUMN body SET STORAGE EXTERNAL;
"""


class Migration(migrations.Migration):
    dependencies = [("reprocessing", "0002_the_letters_and_their_lanes")]
    operations = [
        migrations.RunSQL(NOW, "DROP FUNCTION redrive_now()"),
        migrations.RunSQL(FENCE, "DROP SEQUENCE redrive_fence"),
        migrations.RunSQL(
            WRITE_ONCE,
            "DROP TRIGGER attempts_are_written_once ON redrive_attempt;"
            "DROP FUNCTION redrive_attempts_are_written_once()",
        ),
        migrations.RunSQL(
            IMMUTABLE,
            "DROP TRIGGER payloads_never_change ON redrive_payload; DROP FUNCTION redrive_payloads_never_change()",
        ),
        migrations.RunSQL(
            NOTICES,
            "DROP TRIGGER parking_is_noticed ON redrive_letter; DROP FUNCTION redrive_parking_is_noticed()",
        ),
        migrations.RunSQL(
            ROOM,
            "ALTER TABLE redrive_letter RESET (fillfactor, autovacuum_vacuum_scale_factor);"
            "ALTER TABLE redrive_lane RESET (fillfactor, autovacuum_vacuum_scale_factor);"
            "ALTER TABLE redrive_attempt RESET (fillfactor, autovacuum_vacuum_scale_factor);"
            "ALTER TABLE redrive_custody RESET (fillfactor, autovacuum_vacuum_scale_factor);"
            "ALTER TABLE redrive_payload ALTER COLUMN body SET STORAGE EXTENDED;",
        ),
    ]
