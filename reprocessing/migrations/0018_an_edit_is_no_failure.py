from django.db import migrations

# As in 0013, but for what "failed" is.
COUNTED = """
CREATE OR REPLACE FUNCTION redrive_letters_are_counted() RETURNS trigger LANGUAGE plpgsql AS $$
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
                       count(finished_at) FILTER (WHERE n = 1) = 1 AS finished,
                       FAILED AS failed
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
"""
EPOCH_ROSE = "sum(n * epoch) > 0"
# With an edit it rises, too, since other bytes are another message; nothing has failed.
IT_WAS_NO_EDIT = "max(revision_id) FILTER (WHERE n = 1) IS NOT DISTINCT FROM max(revision_id) FILTER (WHERE n = -1)"


class Migration(migrations.Migration):
    dependencies = [("reprocessing", "0017_what_the_planner_is_told")]
    operations = [
        migrations.RunSQL(
            COUNTED.replace("FAILED", f"{EPOCH_ROSE} AND {IT_WAS_NO_EDIT}"), COUNTED.replace("FAILED", EPOCH_ROSE)
        ),
    ]
