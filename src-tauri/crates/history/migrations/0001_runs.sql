-- Version 1: machines, engines, models, runs, tests, samples.
--
-- Times are UTC, RFC 3339 with nine digits of fraction, so that text order is time order.
-- Durations are integer nanoseconds. Ids of runs and tests are UUIDv7 as text: sorted by time,
-- the same in a shell, an export and a URL. Unknown is NULL, never 0.
--
-- Columns that every result measured here has (settings, sizes, times) are nullable all the
-- same: results of other tools live in these tables too, and their older files lack some.

CREATE TABLE machine (
    id             TEXT PRIMARY KEY NOT NULL CHECK (id <> ''),
    cpu            TEXT NOT NULL,
    physical_cores INTEGER CHECK (physical_cores > 0),
    logical_cores  INTEGER CHECK (logical_cores > 0)
) STRICT;

CREATE TABLE engine (
    id            INTEGER PRIMARY KEY,
    build_number  INTEGER,
    build_commit  TEXT,
    crate_version TEXT,
    variant       TEXT,
    backends      TEXT
) STRICT;

-- NULLs are distinct in a UNIQUE constraint; two engines with the same unknowns are one.
CREATE UNIQUE INDEX engine_identity ON engine (
    ifnull(build_number, -1), ifnull(build_commit, ''), ifnull(crate_version, ''),
    ifnull(variant, ''), ifnull(backends, '')
);

-- A model is its content: a file that was renamed is the same row.
CREATE TABLE model (
    fingerprint            TEXT PRIMARY KEY NOT NULL CHECK (fingerprint <> ''),
    name                   TEXT NOT NULL,
    architecture           TEXT,
    quantization           TEXT,
    file_bytes             INTEGER CHECK (file_bytes >= 0),
    parameters             INTEGER CHECK (parameters >= 0),
    active_parameters      INTEGER CHECK (active_parameters >= 0),
    weight_bytes_per_token INTEGER CHECK (weight_bytes_per_token >= 0),
    ability                TEXT,
    synthetic              INTEGER NOT NULL CHECK (synthetic IN (0, 1))
) STRICT;

CREATE TABLE run (
    id                     TEXT PRIMARY KEY NOT NULL CHECK (length(id) = 36),
    -- 'measured' by this history's own programs; 'imported' from another Twospeed.
    origin                 TEXT NOT NULL CHECK (origin <> ''),
    -- Another tool's result has no id of its own: its content keeps it from coming in twice.
    content_hash           TEXT UNIQUE,
    imported_at            TEXT,
    started_at             TEXT CHECK (started_at GLOB '????-??-??T??:??:??.?????????Z'),
    ended_at               TEXT,
    status                 TEXT NOT NULL CHECK (status IN ('running', 'complete', 'stopped', 'interrupted')),
    -- What an upgrade changes of a machine belongs to the run, not to the machine.
    machine                TEXT REFERENCES machine (id),
    machine_name           TEXT,
    os                     TEXT,
    memory_bytes           INTEGER CHECK (memory_bytes > 0),
    last_level_cache_bytes INTEGER CHECK (last_level_cache_bytes > 0),
    app_version            TEXT,
    preset                 TEXT,
    plan                   TEXT CHECK (plan IS NULL OR json_valid(plan)),
    -- The process that measures; unknown for imported runs.
    owner_pid              INTEGER,
    owner_started          INTEGER,
    note                   TEXT,
    -- Fields of an import that this version does not know.
    extra                  TEXT CHECK (extra IS NULL OR json_valid(extra)),
    -- Deleted runs stay, so that deleting can be undone.
    deleted_at             TEXT
) STRICT;

CREATE INDEX run_by_time ON run (started_at);
CREATE INDEX run_running ON run (id) WHERE status = 'running';

CREATE TABLE test (
    id                    TEXT PRIMARY KEY NOT NULL CHECK (length(id) = 36),
    run                   TEXT NOT NULL REFERENCES run (id),
    position              INTEGER NOT NULL CHECK (position >= 0),
    model                 TEXT NOT NULL REFERENCES model (fingerprint),
    -- TEXT, or a BLOB where the path is no Unicode.
    model_path            ANY,
    started_at            TEXT CHECK (started_at GLOB '????-??-??T??:??:??.?????????Z'),
    repetitions           INTEGER CHECK (repetitions > 0),
    warmup                INTEGER CHECK (warmup IN (0, 1)),

    -- What is timed, by llama-bench's names.
    n_prompt              INTEGER NOT NULL CHECK (n_prompt >= 0),
    n_gen                 INTEGER NOT NULL CHECK (n_gen >= 0),
    n_depth               INTEGER NOT NULL CHECK (n_depth >= 0),

    -- Every setting, by llama-bench's names.
    n_batch               INTEGER CHECK (n_batch > 0),
    n_ubatch              INTEGER CHECK (n_ubatch > 0),
    n_threads             INTEGER CHECK (n_threads > 0),
    cpu_mask              TEXT,
    cpu_strict            INTEGER CHECK (cpu_strict IN (0, 1)),
    poll                  INTEGER,
    type_k                TEXT,
    type_v                TEXT,
    n_gpu_layers          INTEGER,
    n_cpu_moe             INTEGER,
    split_mode            TEXT,
    main_gpu              INTEGER,
    no_kv_offload         INTEGER CHECK (no_kv_offload IN (0, 1)),
    flash_attn            INTEGER CHECK (flash_attn IN (-1, 0, 1)),
    devices               TEXT,
    tensor_split          TEXT,
    tensor_buft_overrides TEXT,
    load_mode             TEXT,
    lazy_mode             TEXT,
    embeddings            INTEGER CHECK (embeddings IN (0, 1)),
    no_op_offload         INTEGER CHECK (no_op_offload IN (0, 1)),
    no_host               INTEGER CHECK (no_host IN (0, 1)),
    repack                INTEGER CHECK (repack IN (0, 1)),
    fit_target            INTEGER,
    fit_min_ctx           INTEGER,
    n_outputs             INTEGER,
    prio                  INTEGER,
    numa                  TEXT,

    -- How it ended.
    status                TEXT NOT NULL CHECK (status IN
        ('running', 'done', 'failed', 'cancelled', 'interrupted', 'skipped')),
    ended_at              TEXT,
    failure_code          TEXT,
    message               TEXT,
    log                   TEXT CHECK (log IS NULL OR json_valid(log)),

    -- Who ran it.
    engine                INTEGER REFERENCES engine (id),
    cpu_info              TEXT,
    gpu_info              TEXT,
    system_info           TEXT,
    worker_protocol       INTEGER,
    worker_variant_score  INTEGER,
    worker_variants       TEXT CHECK (worker_variants IS NULL OR json_valid(worker_variants)),
    worker_devices        TEXT CHECK (worker_devices IS NULL OR json_valid(worker_devices)),

    -- The model as the engine loaded it.
    model_type            TEXT,
    model_size            INTEGER CHECK (model_size >= 0),
    model_n_params        INTEGER CHECK (model_n_params >= 0),
    load_ns               INTEGER CHECK (load_ns >= 0),
    load_page_cache       TEXT,
    load_resident_before  REAL,
    loaded_layers         INTEGER,
    loaded_n_ctx_train    INTEGER,
    loaded_n_vocab        INTEGER,
    loaded_ability        TEXT,
    loaded_recurrent      INTEGER CHECK (loaded_recurrent IN (0, 1)),

    -- What lay where.
    context_ns            INTEGER CHECK (context_ns >= 0),
    n_ctx                 INTEGER CHECK (n_ctx >= 0),
    offloaded_layers      INTEGER,
    total_layers          INTEGER,
    flash_attn_used       INTEGER CHECK (flash_attn_used IN (0, 1)),
    buffers               TEXT CHECK (buffers IS NULL OR json_valid(buffers)),

    -- The machine around it.
    anchor_before_ns      INTEGER,
    anchor_after_ns       INTEGER,
    state_before          TEXT CHECK (state_before IS NULL OR json_valid(state_before)),
    state_after           TEXT CHECK (state_after IS NULL OR json_valid(state_after)),
    peak_rss_bytes        INTEGER,
    warnings              TEXT CHECK (warnings IS NULL OR json_valid(warnings)),

    -- Fields of an import that this version does not know.
    extra                 TEXT CHECK (extra IS NULL OR json_valid(extra)),

    CHECK (n_prompt + n_gen > 0),
    CHECK (status <> 'running' OR ended_at IS NULL)
) STRICT;

CREATE INDEX test_by_run ON test (run);
CREATE INDEX test_by_model ON test (model, n_prompt, n_gen, n_depth, started_at);

-- A speed is tokens / ns: a sample of no time is no sample.
CREATE TABLE sample (
    test                 TEXT NOT NULL REFERENCES test (id),
    sample_index         INTEGER NOT NULL CHECK (sample_index >= 0),
    ns                   INTEGER NOT NULL CHECK (ns > 0),
    involuntary_switches INTEGER CHECK (involuntary_switches >= 0),
    major_faults         INTEGER CHECK (major_faults >= 0),
    at                   TEXT NOT NULL,
    PRIMARY KEY (test, sample_index)
) STRICT, WITHOUT ROWID;

-- CPU variants that died on a machine with an engine build: not tried again there.
CREATE TABLE variant_set_aside (
    machine       TEXT NOT NULL REFERENCES machine (id),
    build_number  INTEGER NOT NULL,
    build_commit  TEXT NOT NULL,
    crate_version TEXT NOT NULL,
    variant       TEXT NOT NULL CHECK (variant <> ''),
    reason        TEXT NOT NULL,
    at            TEXT NOT NULL,
    PRIMARY KEY (machine, build_number, build_commit, crate_version, variant)
) STRICT, WITHOUT ROWID;

-- How fast a machine reads its memory, by buffer size: what decode's ceiling is made of.
-- The key's columns come first: SQLite before 3.41 otherwise calls a sound table broken.
CREATE TABLE read_speed (
    machine          TEXT NOT NULL REFERENCES machine (id),
    buffer_bytes     INTEGER NOT NULL CHECK (buffer_bytes > 0),
    at               TEXT NOT NULL,
    bytes_per_second INTEGER NOT NULL CHECK (bytes_per_second > 0),
    threads          INTEGER NOT NULL CHECK (threads > 0),
    PRIMARY KEY (machine, buffer_bytes, at)
) STRICT, WITHOUT ROWID;
