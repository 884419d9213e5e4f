from django.db import migrations

# The one clock of leases, deadlines and due times. Tests replace this function.
NOW = """
CREATE FUNCTION redrive_now() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE AS 'SELECT clock_timestamp()'
"""

# A new UUID, version 7 (RFC 9562, section 5.7): 48 bits of milliseconds since 1970, then random bits. So new entries of
# an index are beside one another, also in a large table. (PostgreSQL has `uuidv7` only since version 18.)
UUID = """
CREATE FUNCTION redrive_new_uuid() RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
SELECT encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
              PLACING substring(int8send((extract(epoch FROM redrive_now()) * 1000)::bigint) FROM 3) FROM 1 FOR 6),
              52, 1), 53, 1), 'hex')::uuid
$$
"""

# Fencing tokens of lanes rise for ever, also after a lane with a high token was deleted.
FENCE = "CREATE SEQUENCE redrive_fence"

# Each column of an attempt is written once; an erasure removes a person's value from `detail`, and key rotation seals
# it. An attempt that gave its lane up never takes the lane again. An attempt may turn from a success into a failure,
# because consumers report failures late, but never back. `spared` may change both ways: whether an attempt failed
# because of an outage is known when the attempts beside it have outcomes.
ATTEMPTS = """
CREATE FUNCTION redrive_attempts_are_written_once() RETURNS trigger LANGUAGE plpgsql AS $$
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
       OR (OLD.detail IS NOT NULL AND NEW.detail IS DISTINCT FROM OLD.detail
           AND current_setting('redrive.erases', true) IS DISTINCT FROM 'on'
           AND current_setting('redrive.reseals', true) IS DISTINCT FROM 'on')
       OR (OLD.closed_at IS NOT NULL AND NEW.closed_at IS DISTINCT FROM OLD.closed_at)
       OR (OLD.returned_at IS NOT NULL AND NEW.returned_at IS DISTINCT FROM OLD.returned_at)
       OR (OLD.counts_as_failure AND NEW.counts_as_failure IS NOT TRUE) OR (OLD.counts_as_failure IS NOT NULL
              AND NEW.counts_as_failure IS NULL)
       OR (NEW.holds_lane AND NOT OLD.holds_lane)
    THEN
        RAISE EXCEPTION 'attempt % is history, and history is not rewritten', OLD.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER attempts_are_written_once BEFORE UPDATE ON redrive_attempt
    FOR EACH ROW EXECUTE FUNCTION redrive_attempts_are_written_once();
"""

# Captured bytes may be deleted with their letter, but never change. Key rotation seals the same bytes with another key,
# in a transaction that allows it.
PAYLOADS = """
CREATE FUNCTION redrive_payloads_never_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.letter_id = OLD.letter_id AND current_setting('redrive.reseals', true) = 'on' THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'the payload of letter % was captured, and captured bytes never change', OLD.letter_id
        USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER payloads_never_change BEFORE UPDATE ON redrive_payload
    FOR EACH ROW EXECUTE FUNCTION redrive_payloads_never_change();
"""

# However a payload is deleted (retention, erasure, shredding), the values that searches found in it are deleted, too.
# One statement for all payloads of a statement.
SEARCHES = """
CREATE FUNCTION redrive_search_entries_go_with_payloads() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM redrive_search_entry WHERE letter_id = ANY(ARRAY(SELECT letter_id FROM gone));
    RETURN NULL;
END $$;
CREATE TRIGGER search_entries_go_with_payloads AFTER DELETE ON redrive_payload
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION redrive_search_entries_go_with_payloads();
"""

# When a letter enters or leaves the parking lot, the DLQ's SQS parking queue gets a message.
NOTICES = """
CREATE FUNCTION redrive_parking_queue_gets_message() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO redrive_parking_queue_message (letter_id, dlq_id, parking_event, made_at, last_error)
    SELECT NEW.id, NEW.dlq_id, CASE NEW.state WHEN 'parked' THEN 'parked' ELSE 'left' END, clock_timestamp(), ''
      FROM redrive_dlq d WHERE d.id = NEW.dlq_id AND d.parking_url <> '';
    RETURN NULL;
END $$;
CREATE TRIGGER parking_queue_gets_message AFTER UPDATE OF state ON redrive_letter FOR EACH ROW
    WHEN ((OLD.state = 'parked') <> (NEW.state = 'parked')) EXECUTE FUNCTION redrive_parking_queue_gets_message();
"""

# Every target has a breaker: nothing is sent to a target without one.
BREAKERS = """
CREATE FUNCTION redrive_target_gets_a_breaker() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO redrive_breaker (target_id) VALUES (NEW.id);
    RETURN NULL;
END $$;
CREATE TRIGGER target_gets_a_breaker AFTER INSERT ON redrive_target
    FOR EACH ROW EXECUTE FUNCTION redrive_target_gets_a_breaker();
"""

# Count, for each statement, how many letters entered or left each state, and what happened in the current hour. Deltas
# are only inserted, so two workers never wait for each other's counter. Old and new rows are grouped, not joined: the
# cached plan serves a statement of one letter as well as one of twenty thousand. An edit raises a letter's epoch, too,
# but is no failure.
LETTERS = """
CREATE FUNCTION redrive_letters_are_counted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO redrive_letter_count_delta (dlq_id, group_id, state, reason, presumed, n)
        SELECT dlq_id, coalesce(group_id, 0), state, reason, presumed, count(*) FROM arrived GROUP BY 1, 2, 3, 4, 5;
        INSERT INTO redrive_hourly_count_delta (dlq_id, hour, what, n)
        SELECT dlq_id, date_trunc('hour', redrive_now()), 'captured', count(*) FROM arrived GROUP BY 1;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO redrive_letter_count_delta (dlq_id, group_id, state, reason, presumed, n)
        SELECT dlq_id, coalesce(group_id, 0), state, reason, presumed, -count(*) FROM gone GROUP BY 1, 2, 3, 4, 5;
    ELSE
        INSERT INTO redrive_letter_count_delta (dlq_id, group_id, state, reason, presumed, n)
        SELECT dlq_id, coalesce(group_id, 0), state, reason, presumed, sum(n)
          FROM (SELECT dlq_id, group_id, state, reason, presumed, 1 AS n FROM arrived
                UNION ALL SELECT dlq_id, group_id, state, reason, presumed, -1 FROM gone) changed
         GROUP BY 1, 2, 3, 4, 5 HAVING sum(n) <> 0;
        INSERT INTO redrive_hourly_count_delta (dlq_id, hour, what, n)
        SELECT c.dlq_id, date_trunc('hour', redrive_now()), w.what, count(*)
          FROM (SELECT id, min(dlq_id) AS dlq_id, max(state) FILTER (WHERE n = 1) AS state,
                       max(state) FILTER (WHERE n = -1) AS was,
                       count(finished_at) FILTER (WHERE n = 1) = 1 AS finished,
                       sum(n * epoch) > 0 AND max(revision_id) FILTER (WHERE n = 1)
                           IS NOT DISTINCT FROM max(revision_id) FILTER (WHERE n = -1) AS failed
                  FROM (SELECT id, dlq_id, state, finished_at, epoch, revision_id, 1 AS n FROM arrived
                        UNION ALL SELECT id, dlq_id, state, finished_at, epoch, revision_id, -1 FROM gone) both_sides
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
CREATE TRIGGER deleted_letters_are_counted AFTER DELETE ON redrive_letter REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION redrive_letters_are_counted();
"""

# An audit entry is written once. It is deleted only with its subject, in a transaction that allows it. When a DLQ, a
# target or a rule is deleted, its entries lose their reference to it. An erasure removes a person's value from texts.
REVIEWS = """
CREATE FUNCTION redrive_audit_entries_are_written_once() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('redrive.forgets', true) = 'on' THEN
        RETURN OLD;
    END IF;
    IF TG_OP = 'UPDATE' AND current_setting('redrive.erases', true) = 'on'
       AND to_jsonb(NEW) - ARRAY['reason', 'before', 'after'] = to_jsonb(OLD) - ARRAY['reason', 'before', 'after'] THEN
        RETURN NEW;
    END IF;
    IF TG_OP = 'UPDATE' AND (NEW.rule_id IS NULL OR NEW.rule_id = OLD.rule_id)
       AND (NEW.dlq_id IS NULL OR NEW.dlq_id = OLD.dlq_id) AND (NEW.target_id IS NULL OR NEW.target_id = OLD.target_id)
       AND to_jsonb(NEW) - ARRAY['rule_id', 'dlq_id', 'target_id']
         = to_jsonb(OLD) - ARRAY['rule_id', 'dlq_id', 'target_id'] THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'review % says what a person did, and is written once', OLD.id USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER audit_entries_are_written_once BEFORE UPDATE OR DELETE ON redrive_audit_entry
    FOR EACH ROW EXECUTE FUNCTION redrive_audit_entries_are_written_once();
"""

# Replaces a text in the names and texts of a JSON document, not in its numbers. Erasures use it.
ERASED = """
CREATE FUNCTION redrive_erased(document jsonb, was text, becomes text) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN CASE jsonb_typeof(document)
        WHEN 'string' THEN to_jsonb(replace(document #>> '{}', was, becomes))
        WHEN 'array' THEN (
            SELECT coalesce(jsonb_agg(redrive_erased(e.member, was, becomes) ORDER BY e.no), '[]')
              FROM jsonb_array_elements(document) WITH ORDINALITY AS e(member, no))
        WHEN 'object' THEN (
            SELECT coalesce(jsonb_object_agg(replace(e.name, was, becomes), redrive_erased(e.member, was, becomes)),
                            '{}')
              FROM jsonb_each(document) AS e(name, member))
        ELSE document END;
END $$;
"""

# Replaces a short text in a JSON document, only where it is a whole value: in the members with these names, in the
# lines of `fields` (conditions NAME:VALUE on search fields), and in `value` if `selector` is in `selectors`. Erasures
# use it.
ERASED_WHOLE_VALUES = """
CREATE FUNCTION redrive_erased_whole_values(
    document jsonb, was text, becomes text, members text[], conditions text[], selectors text[]) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN CASE jsonb_typeof(document)
        WHEN 'array' THEN (
            SELECT coalesce(jsonb_agg(redrive_erased_whole_values(e.member, was, becomes, members, conditions,
                                                                  selectors) ORDER BY e.no), '[]')
              FROM jsonb_array_elements(document) WITH ORDINALITY AS e(member, no))
        WHEN 'object' THEN (
            SELECT coalesce(jsonb_object_agg(e.name, CASE
                       WHEN e.member = to_jsonb(was)
                            AND (e.name = ANY(members) OR e.name = 'value' AND document ->> 'selector' = ANY(selectors))
                       THEN to_jsonb(becomes)
                       WHEN e.name = 'fields' AND jsonb_typeof(e.member) = 'string' THEN (
                            SELECT to_jsonb(coalesce(string_agg(CASE
                                       WHEN l.line = ANY(conditions)
                                       THEN left(l.line, strpos(l.line, ':')) || becomes ELSE l.line END,
                                       E'\\n' ORDER BY l.no), ''))
                              FROM unnest(string_to_array(e.member #>> '{}', E'\\n')) WITH ORDINALITY AS l(line, no))
                       ELSE redrive_erased_whole_values(e.member, was, becomes, members, conditions, selectors) END),
                   '{}')
              FROM jsonb_each(document) AS e(name, member))
        ELSE document END;
END $$;
"""

# A revision may have been sent, so it never changes. Key rotation: as for payloads. An erasure removes a person's value
# from the reason.
REVISIONS = """
CREATE FUNCTION redrive_revisions_never_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('redrive.reseals', true) = 'on'
       AND to_jsonb(NEW) - ARRAY['body', 'attributes', 'body_hash', 'previous_body_hash']
         = to_jsonb(OLD) - ARRAY['body', 'attributes', 'body_hash', 'previous_body_hash'] THEN
        RETURN NEW;
    END IF;
    IF current_setting('redrive.erases', true) = 'on' AND to_jsonb(NEW) - 'reason' = to_jsonb(OLD) - 'reason' THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'revision % of letter % was sent, or may have been, and never changes', OLD.no, OLD.letter_id
        USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER revisions_never_change BEFORE UPDATE ON redrive_revision
    FOR EACH ROW EXECUTE FUNCTION redrive_revisions_never_change();
"""

# Rows that change often get free space on their page. Large tables are vacuumed and analyzed after 2 % of the rows
# changed: one flood is a small part of a table with a long history. Bodies are read whole, so they are not compressed.
ROOM = """
ALTER TABLE redrive_letter
    SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE redrive_lane
    SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE redrive_attempt
    SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE redrive_dlq_copy
    SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE redrive_payload SET (autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE redrive_search_entry SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE redrive_letter_count SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE redrive_hourly_count SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE redrive_metric SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE redrive_letter_count_delta SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
ALTER TABLE redrive_hourly_count_delta SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
ALTER TABLE redrive_payload ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE redrive_revision ALTER COLUMN body SET STORAGE EXTERNAL;
"""


class Migration(migrations.Migration):
    dependencies = [("reprocessing", "0001_tables")]
    # Triggers and storage settings go with their tables.
    operations = [
        migrations.RunSQL(NOW, "DROP FUNCTION redrive_now()"),
        migrations.RunSQL(UUID, "DROP FUNCTION redrive_new_uuid()"),
        migrations.RunSQL(FENCE, "DROP SEQUENCE redrive_fence"),
        migrations.RunSQL(ATTEMPTS, "DROP FUNCTION redrive_attempts_are_written_once() CASCADE"),
        migrations.RunSQL(PAYLOADS, "DROP FUNCTION redrive_payloads_never_change() CASCADE"),
        migrations.RunSQL(SEARCHES, "DROP FUNCTION redrive_search_entries_go_with_payloads() CASCADE"),
        migrations.RunSQL(NOTICES, "DROP FUNCTION redrive_parking_queue_gets_message() CASCADE"),
        migrations.RunSQL(BREAKERS, "DROP FUNCTION redrive_target_gets_a_breaker() CASCADE"),
        migrations.RunSQL(LETTERS, "DROP FUNCTION redrive_letters_are_counted() CASCADE"),
        migrations.RunSQL(REVIEWS, "DROP FUNCTION redrive_audit_entries_are_written_once() CASCADE"),
        migrations.RunSQL(ERASED, "DROP FUNCTION redrive_erased(jsonb, text, text)"),
        migrations.RunSQL(
            ERASED_WHOLE_VALUES,
            "DROP FUNCTION redrive_erased_whole_values(jsonb, text, text, text[], text[], text[])",
        ),
        migrations.RunSQL(REVISIONS, "DROP FUNCTION redrive_revisions_never_change() CASCADE"),
        migrations.RunSQL(ROOM, migrations.RunSQL.noop),
    ]
