-- Version 3: tests that are more than one speed, results of other tools, tuned settings.

-- What a test measures: the key of its kind, and the whole of it where it is no plain speed.
ALTER TABLE test ADD COLUMN kind TEXT NOT NULL DEFAULT 'speed' CHECK (kind <> '');
ALTER TABLE test ADD COLUMN kind_detail TEXT CHECK (kind_detail IS NULL OR json_valid(kind_detail));

-- What another tool said of its samples where it did not give them. Unknown is NULL.
ALTER TABLE test ADD COLUMN reported_avg_ns REAL CHECK (reported_avg_ns > 0);
ALTER TABLE test ADD COLUMN reported_stddev_ns REAL CHECK (reported_stddev_ns >= 0);
ALTER TABLE test ADD COLUMN reported_avg_ts REAL CHECK (reported_avg_ts > 0);
ALTER TABLE test ADD COLUMN reported_stddev_ts REAL CHECK (reported_stddev_ts >= 0);

-- Why a result cannot be right; it stays out of figures until it is allowed.
ALTER TABLE test ADD COLUMN suspect TEXT;
ALTER TABLE test ADD COLUMN allowed_at TEXT;

-- What a sample consists of, and the machine around it.
ALTER TABLE sample ADD COLUMN reading TEXT CHECK (reading IS NULL OR json_valid(reading));
ALTER TABLE sample ADD COLUMN conditions TEXT CHECK (conditions IS NULL OR json_valid(conditions));

-- A quality test reads a whole text, however long: it counts no tokens. Of a constraint SQLite can
-- change only the words; they are read anew at RESET, and a table made after it tells other
-- connections.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema
    SET sql = replace(sql, 'CHECK (n_prompt + n_gen > 0)',
                      'CHECK (n_prompt + n_gen > 0 OR kind = ''quality'')')
    WHERE type = 'table' AND name = 'test';
PRAGMA writable_schema = RESET;

-- Settings found fastest by measuring, newest last. `target` is 'prefill', 'decode' or 'mix:P,N'.
CREATE TABLE tuned (
    id          TEXT PRIMARY KEY NOT NULL CHECK (length(id) = 36),
    at          TEXT NOT NULL,
    machine     TEXT NOT NULL REFERENCES machine (id),
    model       TEXT NOT NULL REFERENCES model (fingerprint),
    target      TEXT NOT NULL CHECK (target <> ''),
    variant     TEXT,
    settings    TEXT NOT NULL CHECK (json_valid(settings)),
    -- Median ratio to llama-bench's defaults and its lower 95 % bound.
    gain        REAL NOT NULL CHECK (gain > 0),
    gain_low    REAL CHECK (gain_low > 0),
    run         TEXT REFERENCES run (id)
) STRICT;

CREATE INDEX tuned_by_model ON tuned (machine, model, target, at);
