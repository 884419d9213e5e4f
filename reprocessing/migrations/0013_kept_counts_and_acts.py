from django.db import migrations

# Statement by statement, what changed in how many letters there are of each kind, and what letters came to within the
# hour. Insert-only: two workers never wait for one another over a count. Old and new rows are grouped, never joined:
# the plan is kept from a statement of one letter to one of twenty thousand, and would go through all of these for each.
COUNTED = """
CREATE FUNCTION redrive_letters_are_counted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO redrive_tally_delta (dlq_id, group_id, state, reason, presumed, n)
        SELECT dlq_id, coalesce(group_id, 0), state, reason, presumed, count(*) FROM arrived GROUP BY 1, 2, 3, 4, 5;
        INSERT INTO redrive_flow_delta (dlq_id, hour, what, n)
        SELECT dlq_id, date_trunc('hour', redrive_now()), 'captured', count(*) FROM arrived GROUP BY 1;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO redrive_tally_delta (dlq_id, group_id, state, reason, presumed, n)
        SELECT dlq_id, coalesce(group_id, 0), state, reason, presumed, -count(*) FROM gone GROUP BY 1, 2, 3, 4, 5;
    ELSE
        INSERT INTO redrive_tally_delta (dlq_id, group_id, state, reason, presumed, n)
        SELECT dlq_id, coalesce(group_id, 0), state, reason, presumed, sum(n)
          FROM (SELECT dlq_id, group_id, state, reason, presumed, 1 AS n FROM arrived
                UNION ALL SELECT dlq_id, group_id, state, reason, presumed, -1 FROM gone) changed
         GROUP BY 1, 2, 3, 4, 5 HAVING sum(n) <> 0;
        INSERT INTO redrive_flow_delta (dlq_id, hour, what, n)
        SELECT c.dlq_id, date_trunc('hour', redrive_now()), w.what, count(*)
          FROM (SELECT id, min(dlq_id) AS dlq_id, max(state) FILTER (WHERE n = 1) AS state,
                       max(state) FILTER (WHERE n = -1) AS was,
                       count(finished_at) FILTER (WHERE n = 1) = 1 AS finished, sum(n * epoch) > 0 AS failed
                  FROM (SELECT id, dlq_id, state, finished_at, epoch, 1 AS n FROM arrived
                        UNION ALL SELECT id, dlq_id, state, finished_at, epoch, -1 FROM gone) both_sides
                 GROUP BY id) c
         CROSS JOIN LATERAL (
               SELECT c.state AS what WHERE c.state <> c.was AND c.finished
               UNION ALL SELECT 'failed' WHERE c.failed) w
         GROUP BY 1, 3;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER new_letters_are_counted AFTER INSERT ON redrive_letter REFERENCING NEW TABLE AS arrived
    FOR EACH STATEMENT EXECUTE FUNCTION redrive_letters_are_counted();
CREATE TRIGGER changed_letters_are_counted AFTER UPDATE ON redrive_letter
    REFERENCING NEW TABLE AS arrived OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION redrive_letters_are_counted();
CREATE TRIGGER forgotten_letters_are_counted AFTER DELETE ON redrive_letter REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION redrive_letters_are_counted();
INSERT INTO redrive_tally (dlq_id, group_id, state, reason, presumed, n)
SELECT dlq_id, coalesce(group_id, 0), state, reason, presumed, count(*) FROM redrive_letter GROUP BY 1, 2, 3, 4, 5;
ALTER TABLE redrive_tally SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE redrive_flow SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE redrive_tally_delta SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
ALTER TABLE redrive_flow_delta SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
"""

# What people did is written once. It is forgotten with what it is about, by whoever says so for the transaction; and a
# rule that is removed is no longer named by what was done to it.
WRITTEN_ONCE = """
CREATE FUNCTION redrive_reviews_are_written_once() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('redrive.forgets', true) = 'on' THEN
        RETURN OLD;
    END IF;
    IF TG_OP = 'UPDATE' AND NEW.rule_id IS NULL AND to_jsonb(NEW) - 'rule_id' = to_jsonb(OLD) - 'rule_id' THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'review % says what a person did, and is written once', OLD.id USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER reviews_are_written_once BEFORE UPDATE OR DELETE ON redrive_review
    FOR EACH ROW EXECUTE FUNCTION redrive_reviews_are_written_once();
CREATE FUNCTION redrive_revisions_never_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'revision % of letter % was sent, or may have been, and never changes', OLD.no, OLD.letter_id
        USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER revisions_never_change BEFORE UPDATE ON redrive_revision
    FOR EACH ROW EXECUTE FUNCTION redrive_revisions_never_change();
ALTER TABLE redrive_revision ALTER COLUMN body SET STORAGE EXTERNAL;
"""


class Migration(migrations.Migration):
    dependencies = [("reprocessing", "0012_what_people_decide_at_the_desk")]
    operations = [
        migrations.RunSQL(
            COUNTED,
            "DROP TRIGGER new_letters_are_counted ON redrive_letter;"
            "DROP TRIGGER changed_letters_are_counted ON redrive_letter;"
            "DROP TRIGGER forgotten_letters_are_counted ON redrive_letter;"
            "DROP FUNCTION redrive_letters_are_counted()",
        ),
        migrations.RunSQL(
            WRITTEN_ONCE,
            "DROP TRIGGER reviews_are_written_once ON redrive_review;"
            "DROP FUNCTION redrive_reviews_are_written_once();"
            "DROP TRIGGER revisions_never_change ON redrive_revision;"
            "DROP FUNCTION redrive_revisions_never_change()",
        ),
    ]
