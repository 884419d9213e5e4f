"""A consumer may say of an attempt that spoke for its target that it failed after all: `ill` rises, and never falls."""

from __future__ import annotations

from django.db import migrations

_FUNCTION = """
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
       OR {ill}
       OR (NEW.holds_lane AND NOT OLD.holds_lane)
    THEN
        RAISE EXCEPTION 'attempt % is history, and history is not rewritten', OLD.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
"""
RISES = _FUNCTION.format(ill="(OLD.ill AND NEW.ill IS NOT TRUE) OR (OLD.ill IS NOT NULL AND NEW.ill IS NULL)")
AS_BEFORE = _FUNCTION.format(ill="(OLD.ill IS NOT NULL AND NEW.ill IS DISTINCT FROM OLD.ill)")


class Migration(migrations.Migration):
    dependencies = [("reprocessing", "0008_every_target_and_what_consumers_say")]
    operations = [migrations.RunSQL(RISES, AS_BEFORE)]
