"""The table of shared budgets and the function that all servers deal in it with.

A row of `budget` is what one server holds of one budget and for how long; the row with the empty name says that the
server is there, and with a share of 1 that it holds all of every budget. `share_budgets` is one turn of one server:
turns follow each other, so each sees what those before it took, and none hands out what another server holds. None
waits for a disk or a standby, which would hold up those of all others.
"""

from __future__ import annotations

_BUDGET_LOCK = 0x706C6562

BUDGET = f"""
CREATE UNLOGGED TABLE pleiad.budget(
  name text COLLATE "C" NOT NULL, owner text COLLATE "C" NOT NULL, share float8 NOT NULL, want float8 NOT NULL,
  expires timestamptz NOT NULL, PRIMARY KEY (name, owner)) WITH (fillfactor = 50);
CREATE FUNCTION pleiad.share_budgets(me text, seconds float8, holds_all boolean,
    names text[], wants float8[], claims float8[], helds float8[])
RETURNS TABLE(budget text, part float8, other_wants float8[]) LANGUAGE plpgsql AS $$
DECLARE
  others bigint;
  is_free boolean;
  until timestamptz;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  PERFORM pg_advisory_xact_lock({_BUDGET_LOCK});
  until := clock_timestamp() + make_interval(secs => seconds);
  DELETE FROM pleiad.budget AS b
    WHERE b.expires < clock_timestamp() OR (b.owner = me AND b.name <> '' AND b.name <> ALL (names));
  SELECT count(*), coalesce(max(b.share), 0) < 1 INTO others, is_free
    FROM pleiad.budget AS b WHERE b.name = '' AND b.owner <> me;
  INSERT INTO pleiad.budget AS b VALUES ('', me, CASE WHEN holds_all OR others = 0 THEN 1 ELSE 0 END, 0, until)
    ON CONFLICT (name, owner) DO UPDATE SET share = excluded.share, expires = excluded.expires;
  RETURN QUERY SELECT '', (others + 1)::float8, '{{}}'::float8[];
  RETURN QUERY
    WITH given AS MATERIALIZED (
      SELECT g.name, g.want, g.claim, g.held, coalesce(o.taken, 0) AS taken, coalesce(o.wants, '{{}}') AS wants
      FROM unnest(names, wants, claims, helds) AS g(name, want, claim, held)
      LEFT JOIN LATERAL (SELECT sum(b.share) AS taken, array_agg(b.want) AS wants
        FROM pleiad.budget AS b WHERE b.name = g.name AND b.owner <> me) AS o ON true),
    saved AS (
      INSERT INTO pleiad.budget AS b
      SELECT g.name, me, greatest(g.held, CASE WHEN is_free THEN least(g.claim, 1 - g.taken) ELSE 0 END),
        g.want, until FROM given AS g
      ON CONFLICT (name, owner) DO UPDATE
        SET share = excluded.share, want = excluded.want, expires = excluded.expires
      RETURNING b.name, b.share)
    SELECT g.name, s.share, g.wants FROM given AS g JOIN saved AS s ON s.name = g.name;
END $$;
"""
