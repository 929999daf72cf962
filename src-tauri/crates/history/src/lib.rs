//! Every run, test and sample, kept in SQLite.
