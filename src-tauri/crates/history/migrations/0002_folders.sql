-- Version 2: the folders and files that the person added to the list of models.

CREATE TABLE folder (
    -- In the order in which they were added.
    position INTEGER PRIMARY KEY,
    -- TEXT, or a BLOB where the path is no Unicode.
    path     ANY NOT NULL UNIQUE,
    added_at TEXT NOT NULL
) STRICT;
