-- Version 4: what single operations of the engine take on a machine: the constants of expected speeds.
--
-- Of each key (all columns but id, at and record) the newest counts; older ones stay.
CREATE TABLE calibration (
    id      TEXT PRIMARY KEY NOT NULL CHECK (length(id) = 36),
    at      TEXT NOT NULL CHECK (at GLOB '????-??-??T??:??:??.?????????Z'),
    machine TEXT NOT NULL REFERENCES machine (id),
    backend TEXT NOT NULL CHECK (backend <> ''),
    variant TEXT NOT NULL CHECK (variant <> ''),
    threads INTEGER NOT NULL CHECK (threads > 0),
    -- llama.cpp's build number.
    build   INTEGER NOT NULL CHECK (build >= 0),
    ubatch  INTEGER NOT NULL CHECK (ubatch > 0),
    record  TEXT NOT NULL CHECK (json_valid(record))
) STRICT;

CREATE INDEX calibration_by_key ON calibration (machine, threads, build, variant, backend, ubatch, at);
