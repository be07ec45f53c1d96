"""The tables of one segment and the functions that write to them, as one script.

`write_3` applies the mutations of one write, in order, each whole or not at all, in one call: it locks the partition
row, compares the epoch, decides each mutation against the row of that moment, and saves the counters. The lock makes
the order of LSNs the order of commits. `batch_3` does the same for a write that is all or nothing.

Functions carry the version of their meaning in their names, so that servers of two versions can work side by side
while they are upgraded. A segment that an older server made gets what it lacks when it is first used; what such a
server writes from then on has no checksum.
"""

from __future__ import annotations

from pleiad.store.checksum import LSN_SHIFT
from pleiad.store.refusal import REFUSALS, Demand
from pleiad.store.rows import Result, Verb

GONE, CREATED, REPLACED, DELETED, EXISTS, MISSING, PRECONDITION_FAILED, UNIQUE_CONFLICT, FULL = range(9)
PARTITION_FULL = 9
RESULTS = {
    GONE: Result.GONE,
    CREATED: Result.CREATED,
    REPLACED: Result.REPLACED,
    DELETED: Result.DELETED,
    EXISTS: Result.EXISTS,
    MISSING: Result.MISSING,
    PRECONDITION_FAILED: Result.PRECONDITION_FAILED,
    UNIQUE_CONFLICT: Result.UNIQUE_CONFLICT,
    FULL: Result.LOGICAL_PARTITION_FULL,
    PARTITION_FULL: Result.PARTITION_FULL,
}
"""How a mutation ended, as the functions tell it."""

CREATE, UPSERT, REPLACE, DELETE = range(4)
VERBS = {Verb.CREATE: CREATE, Verb.UPSERT: UPSERT, Verb.REPLACE: REPLACE, Verb.DELETE: DELETE}
"""What a mutation does, as the functions are told it."""

MUST_EXIST, MUST_BE_ABSENT = 1, 2
"""Flags of a precondition."""

NOT_READY = "PL002"
"""The SQLSTATE of a search in an index that is not ready."""

_TABLES = """
CREATE SCHEMA {s};
CREATE TABLE {s}.item(
  number bigint PRIMARY KEY, epk bytea NOT NULL, id text COLLATE "C" NOT NULL, lsn bigint NOT NULL,
  ts bigint NOT NULL, ttl bigint, size_bytes bigint NOT NULL, terms bigint NOT NULL, body bytea NOT NULL, doc jsonb,
  checksum bigint);
CREATE UNIQUE INDEX item_key ON {s}.item(epk, id);
CREATE INDEX item_lsn ON {s}.item(lsn);
CREATE INDEX item_ttl ON {s}.item((ts + ttl)) WHERE ttl > 0;
CREATE TABLE {s}.partition(
  id bigint PRIMARY KEY, epoch bigint NOT NULL, lsn bigint NOT NULL, next_sequence bigint NOT NULL,
  items bigint NOT NULL, size_bytes bigint NOT NULL) WITH (fillfactor = 50);
CREATE TABLE {s}.unique_value(
  epk bytea NOT NULL, key int NOT NULL, value bytea NOT NULL, number bigint NOT NULL, PRIMARY KEY (epk, key, value));
CREATE INDEX unique_value_number ON {s}.unique_value(number);
CREATE TABLE {s}.deleted(
  sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, epk bytea NOT NULL, number bigint NOT NULL);
CREATE TABLE {s}.version(
  lsn bigint NOT NULL, epk bytea NOT NULL, position int NOT NULL, verb text NOT NULL, is_expiry boolean NOT NULL,
  ts bigint NOT NULL, number bigint NOT NULL, id text COLLATE "C" NOT NULL, size_bytes bigint NOT NULL,
  body bytea NOT NULL, previous_lsn bigint NOT NULL, previous_ts bigint NOT NULL, previous_body bytea NOT NULL,
  PRIMARY KEY (lsn, epk, position));
CREATE INDEX version_ts ON {s}.version(ts);
CREATE INDEX version_number ON {s}.version(number);
CREATE TABLE {s}.setting(tracks_deletes boolean NOT NULL);
INSERT INTO {s}.setting VALUES (false);
CREATE TABLE {s}.path_index(
  id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, path text NOT NULL, element boolean NOT NULL,
  kind int NOT NULL, address jsonpath NOT NULL, state text NOT NULL, built_to bigint NOT NULL,
  build_end bigint NOT NULL, items_done bigint NOT NULL, used_at float8 NOT NULL);
CREATE TABLE {s}.entry(
  index int NOT NULL, tag text COLLATE "C" NOT NULL, num float8 NOT NULL, number bigint NOT NULL,
  PRIMARY KEY (index, tag, num, number));
"""

# The entries of an item after a change: those it no longer has leave, those it did not have come.
_INDEX = """
CREATE FUNCTION {s}.index_1(a_number bigint, old {s}.item, new {s}.item) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF old.number IS NULL THEN
    INSERT INTO {s}.entry
      SELECT i.id, e.tag, e.num, a_number FROM {s}.path_index AS i
      CROSS JOIN LATERAL pleiad.entries(i.kind, i.address, pleiad.document(new.body, new.doc), new.id, new.ts) AS e
      WHERE i.state <> 'dropping' ON CONFLICT DO NOTHING;
  ELSE
    WITH before AS MATERIALIZED (
      SELECT i.id, e.tag, e.num FROM {s}.path_index AS i
      CROSS JOIN LATERAL pleiad.entries(i.kind, i.address, pleiad.document(old.body, old.doc), old.id, old.ts) AS e
      WHERE i.state <> 'dropping'),
    after AS MATERIALIZED (
      SELECT i.id, e.tag, e.num FROM {s}.path_index AS i
      CROSS JOIN LATERAL pleiad.entries(i.kind, i.address, pleiad.document(new.body, new.doc), new.id, new.ts) AS e
      WHERE i.state <> 'dropping' AND new.number IS NOT NULL),
    gone AS (
      DELETE FROM {s}.entry AS x USING (SELECT * FROM before EXCEPT SELECT * FROM after) AS b
      WHERE x.index = b.id AND x.tag = b.tag AND x.num = b.num AND x.number = a_number)
    INSERT INTO {s}.entry SELECT id, tag, num, a_number FROM (SELECT * FROM after EXCEPT SELECT * FROM before) AS a
      ON CONFLICT DO NOTHING;
  END IF;
END $$;
CREATE FUNCTION {s}.remove_1(old {s}.item, tracks boolean, indexes boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM {s}.item WHERE number = old.number;
  DELETE FROM {s}.unique_value WHERE number = old.number;
  IF indexes THEN PERFORM {s}.index_1(old.number, old, NULL); END IF;
  IF tracks THEN INSERT INTO {s}.deleted(epk, number) VALUES (old.epk, old.number); END IF;
END $$;
CREATE FUNCTION {s}.ready_1(a_index int) RETURNS int LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM {s}.path_index WHERE id = a_index AND state = 'ready') THEN
    RAISE EXCEPTION 'index % is not ready', a_index USING ERRCODE = '{not_ready}';
  END IF;
  RETURN a_index;
END $$;
"""

_ARGUMENTS = """a_partition bigint, a_epoch bigint, a_now bigint, a_default_ttl bigint, a_limit bigint,
  a_partition_limit bigint, a_keep boolean,
  a_verb int[], a_epk bytea[], a_id text[], a_body bytea[], a_doc text[], a_size bigint[], a_terms bigint[],
  a_ttl bigint[], a_lsn bigint[], a_not_lsn bigint[], a_flags int[], a_new_id text[], a_unique_count int[],
  a_unique bytea[]{more}"""
_ANSWER = """result int, lsn bigint, number bigint, old_number bigint, old_lsn bigint, old_ts bigint, old_ttl bigint,
  old_size_bytes bigint, old_terms bigint, old_body bytea, unique_key int"""
_PASSED = """a_partition, a_epoch, a_now, a_default_ttl, a_limit, a_partition_limit, a_keep, a_verb, a_epk, a_id,
  a_body, a_doc, a_size, a_terms, a_ttl, a_lsn, a_not_lsn, a_flags, a_new_id, a_unique_count, a_unique{more}"""


def _expired(row: str) -> str:
    """Whether a row's time to live is over; the container decides whether items expire at all."""
    return (
        f"a_default_ttl IS NOT NULL AND coalesce({row}.ttl, a_default_ttl) > 0 "
        f"AND {row}.ts + coalesce({row}.ttl, a_default_ttl) <= a_now"
    )


_BROKEN = {
    Demand.MUST_EXIST: f"m.flags & {MUST_EXIST} <> 0",
    Demand.MUST_BE_ABSENT: f"m.flags & {MUST_BE_ABSENT} <> 0",
    Demand.LSN: "m.lsn <> old.lsn",
    Demand.NOT_LSN: "m.not_lsn = old.lsn",
}
"""When a demand of a precondition is broken; NULL, which demands nothing, breaks nothing."""


def _refused() -> str:
    """The table of refusals as an expression: why the mutation may not touch the row, or NULL."""
    codes = {result: code for code, result in RESULTS.items()}
    cases = []
    for rule in REFUSALS:
        verbs = ", ".join(str(VERBS[verb]) for verb in rule.verbs)
        found = "IS NOT NULL" if rule.finds_row else "IS NULL"
        demand = "" if rule.broken is None else f" AND {_BROKEN[rule.broken]}"
        cases.append(f"WHEN m.verb IN ({verbs}) AND old.number {found}{demand} THEN {codes[rule.result]}")
    return f"CASE {' '.join(cases)} END"


_LSN = "(CASE WHEN a_atomic THEN v_start ELSE p.lsn END + 1)"
"""The LSN of the next change; those of an atomic write share one."""


def _version(verb: str, is_expiry: str, row: str, after: str, before: str) -> str:
    """Remembers a change, if changes are remembered."""
    return (
        f"IF a_keep THEN INSERT INTO {{s}}.version VALUES ({_LSN}, {row}.epk, v_position, '{verb}', {is_expiry}, "
        f"a_now, {row}.number, {row}.id, {after}, {before}); v_position := v_position + 1; END IF;"
    )


def _remove(row: str, is_expiry: bool) -> str:
    """Removes a row: one whose time is over is a change of its own, where changes are remembered."""
    before = f"{row}.lsn, {row}.ts, {row}.body"
    note = _version("delete", str(is_expiry).lower(), row, f"{row}.size_bytes, ''::bytea", before)
    count = "IF a_keep AND NOT a_atomic THEN p.lsn := p.lsn + 1; END IF;" if is_expiry else ""
    return (
        f"{note} {count} PERFORM {{s}}.remove_1({row}, v_tracks, v_indexes); p.items := p.items - 1; "
        f"p.size_bytes := p.size_bytes - {row}.size_bytes;"
    )


_NOTE_CREATED = _version("create", "false", "new", "new.size_bytes, new.body", "0, 0, ''::bytea")
_NOTE_REPLACED = _version(
    "replace", "false", "new", "new.size_bytes + old.size_bytes, new.body", "old.lsn, old.ts, old.body"
)

_CHECKSUM = f"new.checksum := m.checksum # new.number # (new.lsn << {LSN_SHIFT});"
"""The checksum of the content comes with the mutation; without one, the row has none."""

_WRITE = f"""
CREATE FUNCTION {{s}}.write_{{v}}({_ARGUMENTS}, a_atomic boolean DEFAULT false) RETURNS TABLE({_ANSWER})
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  p {{s}}.partition; old {{s}}.item; new {{s}}.item; other {{s}}.item; m record;
  v_tracks boolean; v_indexes boolean; v_start bigint; v_unique_first int := 1; v_growth bigint; v_holder bigint;
  v_position int := 0; v_before bigint;
BEGIN
  SELECT * INTO p FROM {{s}}.partition AS x WHERE x.id = a_partition FOR UPDATE;
  IF NOT FOUND THEN
    INSERT INTO {{s}}.partition VALUES (a_partition, a_epoch, 0, 1, 0, 0) ON CONFLICT DO NOTHING;
    SELECT * INTO p FROM {{s}}.partition AS x WHERE x.id = a_partition FOR UPDATE;
  END IF;
  IF p.epoch <> a_epoch THEN
    result := {GONE};
    FOR i IN 1 .. cardinality(a_verb) LOOP RETURN NEXT; END LOOP;
    RETURN;
  END IF;
  SELECT tracks_deletes, EXISTS (SELECT FROM {{s}}.path_index) INTO v_tracks, v_indexes FROM {{s}}.setting;
  v_start := p.lsn;
  FOR m IN SELECT * FROM unnest(
      a_verb, a_epk, a_id, a_body, a_doc, a_size, a_terms, a_ttl, a_lsn, a_not_lsn, a_flags, a_new_id, a_unique_count,
      {{checksums}}) AS t(verb, epk, id, body, doc, size_bytes, terms, ttl, lsn, not_lsn, flags, new_id, unique_count,
      checksum) LOOP
    result := NULL; lsn := 0; number := NULL; unique_key := 0; v_before := p.lsn;
    SELECT * INTO old FROM {{s}}.item AS x WHERE x.epk = m.epk AND x.id = m.id;
    IF old.number IS NOT NULL AND {_expired("old")} THEN
      {_remove("old", is_expiry=True)}
      old := NULL;
    END IF;
    result := {_refused()};
    IF result IS NULL AND m.verb = {DELETE} THEN
      {_remove("old", is_expiry=False)}
      result := {DELETED};
    END IF;
    IF result IS NULL AND m.new_id IS NOT NULL THEN
      SELECT * INTO other FROM {{s}}.item AS x WHERE x.epk = m.epk AND x.id = m.new_id;
      IF other.number IS NOT NULL THEN
        IF {_expired("other")} THEN
          {_remove("other", is_expiry=True)}
        ELSE
          result := {EXISTS};
        END IF;
      END IF;
    END IF;
    IF result IS NULL THEN
      FOR i IN 1 .. m.unique_count LOOP
        SELECT x.number INTO v_holder FROM {{s}}.unique_value AS x
          WHERE x.epk = m.epk AND x.key = i - 1 AND x.value = a_unique[v_unique_first + i - 1];
        IF v_holder IS NOT NULL AND v_holder IS DISTINCT FROM old.number THEN
          SELECT * INTO other FROM {{s}}.item AS x WHERE x.number = v_holder;
          IF {_expired("other")} THEN
            {_remove("other", is_expiry=True)}
          ELSE
            result := {UNIQUE_CONFLICT}; unique_key := i - 1;
            EXIT;
          END IF;
        END IF;
      END LOOP;
    END IF;
    v_growth := m.size_bytes - coalesce(old.size_bytes, 0);
    IF result IS NULL AND a_limit > 0 AND v_growth > 0 AND p.size_bytes + v_growth > a_limit
       AND (SELECT coalesce(sum(x.size_bytes), 0) FROM {{s}}.item AS x WHERE x.epk = m.epk) + v_growth > a_limit THEN
      result := {FULL};
    END IF;
    IF result IS NULL AND a_partition_limit > 0 AND v_growth > 0 AND p.size_bytes + v_growth > a_partition_limit THEN
      result := {PARTITION_FULL};
    END IF;
    IF result IS NULL THEN
      new := ROW(old.number, m.epk, coalesce(m.new_id, m.id), {_LSN}, a_now,
        m.ttl, m.size_bytes, m.terms, m.body, m.doc::jsonb, NULL);
      IF m.doc IS NULL THEN PERFORM convert_from(m.body, 'UTF8')::jsonb; END IF;
      IF old.number IS NULL THEN
        new.number := (a_partition << 36) | p.next_sequence;
        {_CHECKSUM}
        {_NOTE_CREATED}
        INSERT INTO {{s}}.item VALUES (new.*);
        p.next_sequence := p.next_sequence + 1;
        p.items := p.items + 1;
        result := {CREATED};
      ELSE
        {_CHECKSUM}
        {_NOTE_REPLACED}
        UPDATE {{s}}.item AS x SET id = new.id, lsn = new.lsn, ts = new.ts, ttl = new.ttl,
          size_bytes = new.size_bytes, terms = new.terms, body = new.body, doc = new.doc,
          checksum = new.checksum WHERE x.number = old.number;
        IF m.unique_count > 0 THEN DELETE FROM {{s}}.unique_value AS x WHERE x.number = old.number; END IF;
        result := {REPLACED};
      END IF;
      p.size_bytes := p.size_bytes + v_growth;
      number := new.number;
      FOR i IN 1 .. m.unique_count LOOP
        INSERT INTO {{s}}.unique_value VALUES (m.epk, i - 1, a_unique[v_unique_first + i - 1], new.number);
      END LOOP;
      IF v_indexes THEN PERFORM {{s}}.index_1(new.number, old, new); END IF;
    END IF;
    v_unique_first := v_unique_first + m.unique_count;
    IF result IN ({CREATED}, {REPLACED}, {DELETED}) THEN
      lsn := {_LSN};
      p.lsn := lsn;
    ELSIF NOT a_atomic AND p.lsn > v_before THEN
      lsn := p.lsn;
    END IF;
    old_number := old.number; old_lsn := old.lsn; old_ts := old.ts; old_ttl := old.ttl;
    old_size_bytes := old.size_bytes; old_terms := old.terms;
    old_body := CASE WHEN m.verb IN ({UPSERT}, {REPLACE}) THEN old.body ELSE ''::bytea END;
    RETURN NEXT;
    IF a_atomic AND lsn = 0 THEN RETURN; END IF;
  END LOOP;
  UPDATE {{s}}.partition AS x SET lsn = p.lsn, next_sequence = p.next_sequence, items = p.items,
    size_bytes = p.size_bytes WHERE x.id = a_partition;
END $$;
CREATE FUNCTION {{s}}.batch_{{v}}({_ARGUMENTS}) RETURNS TABLE({_ANSWER}) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_refused boolean := false;
BEGIN
  FOR result, lsn, number, old_number, old_lsn, old_ts, old_ttl, old_size_bytes, old_terms, old_body, unique_key IN
      SELECT * FROM {{s}}.write_{{v}}({_PASSED}, true) LOOP
    RETURN NEXT;
    v_refused := v_refused OR lsn = 0;
  END LOOP;
  IF v_refused THEN RAISE EXCEPTION 'refused' USING ERRCODE = 'PL001'; END IF;
EXCEPTION WHEN SQLSTATE 'PL001' THEN RETURN;
END $$;
"""

# A lock on the table of partitions waits for the writes that run and keeps others waiting, so an index is made, and
# a piece of it built, between two writes.
_BUILD = """
CREATE FUNCTION {s}.make_index_1(a_path text, a_element boolean, a_kind int, a_address jsonpath, a_used_at float8)
RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  v_id int;
BEGIN
  LOCK TABLE {s}.partition IN EXCLUSIVE MODE;
  SELECT id INTO v_id FROM {s}.path_index WHERE path = a_path AND element = a_element AND state <> 'dropping';
  IF v_id IS NULL THEN
    INSERT INTO {s}.path_index(path, element, kind, address, state, built_to, build_end, items_done, used_at)
      SELECT a_path, a_element, a_kind, a_address, 'building', 0, coalesce(max(number), 0), 0, a_used_at FROM {s}.item
      RETURNING id INTO v_id;
  END IF;
  RETURN v_id;
END $$;
CREATE FUNCTION {s}.build_1(a_index int, a_items int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  i {s}.path_index; v_upto bigint; v_items bigint;
BEGIN
  SELECT * INTO i FROM {s}.path_index WHERE id = a_index FOR UPDATE;
  IF i.state IS DISTINCT FROM 'building' THEN RETURN coalesce(i.state, 'dropping'); END IF;
  LOCK TABLE {s}.partition IN EXCLUSIVE MODE;
  SELECT max(number), count(*) INTO v_upto, v_items FROM
   (SELECT number FROM {s}.item WHERE number > i.built_to AND number <= i.build_end ORDER BY number LIMIT a_items) AS c;
  INSERT INTO {s}.entry
    SELECT i.id, e.tag, e.num, x.number FROM {s}.item AS x
    CROSS JOIN LATERAL pleiad.entries(i.kind, i.address, pleiad.document(x.body, x.doc), x.id, x.ts) AS e
    WHERE x.number > i.built_to AND x.number <= v_upto ON CONFLICT DO NOTHING;
  i.state := CASE WHEN v_items < a_items THEN 'ready' ELSE 'building' END;
  UPDATE {s}.path_index SET built_to = coalesce(v_upto, built_to), items_done = items_done + v_items, state = i.state
    WHERE id = a_index;
  RETURN i.state;
END $$;
CREATE FUNCTION {s}.stop_index_1(a_index int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE {s}.path_index SET state = 'dropping' WHERE id = a_index;
  LOCK TABLE {s}.partition IN EXCLUSIVE MODE;
END $$;
"""


NEWEST = "batch_3"
"""The function that segments of older versions lack, and the script below makes last."""


def _write(version: int) -> str:
    """The functions that write, as servers of a version of Pleiad's own call them."""
    has_checksums = version >= 3
    return (
        _WRITE.replace("{v}", str(version))
        .replace("{checksums}", "a_checksum" if has_checksums else "NULL::bigint[]")
        .replace("bytea[]{more}", "bytea[], a_checksum bigint[]" if has_checksums else "bytea[]")
        .replace("{more}", ", a_checksum" if has_checksums else "")
    )


def tables(schema: str) -> str:
    """The script that makes the schema of a segment."""
    script = _TABLES + _INDEX + _write(3) + _BUILD
    return script.replace("{s}", schema).replace("{not_ready}", NOT_READY)


def upgrade(schema: str) -> str:
    """The script that makes what the segment of an older version lacks, or makes it again."""
    script = "ALTER TABLE {s}.item ADD COLUMN IF NOT EXISTS checksum bigint;" + _write(2) + _write(3)
    return script.replace("{s}", schema).replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
