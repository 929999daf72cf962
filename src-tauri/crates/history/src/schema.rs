//! Versions of the schema.

use sqlx::{AssertSqlSafe, Connection, SqliteConnection};

use crate::error::Fault;

/// Marks the file as ours: "2spd" in SQLite's `application_id`.
pub(crate) const APPLICATION_ID: i64 = 0x3273_7064;

/// What leads from each version to the next, in order; `user_version` counts those applied.
/// A migration that was released is never changed.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_runs.sql"),
    include_str!("../migrations/0002_folders.sql"),
    include_str!("../migrations/0003_kinds.sql"),
    include_str!("../migrations/0004_calibration.sql"),
];

/// The newest version known here.
pub(crate) const VERSION: i64 = MIGRATIONS.len() as i64;

/// What a database says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity {
    /// Nothing is in it yet.
    Empty,
    /// A history of this version.
    Ours(i64),
    /// Of another program.
    Foreign,
}

pub(crate) async fn identity(connection: &mut SqliteConnection) -> Result<Identity, Fault> {
    let (application, version, objects): (i64, i64, i64) = sqlx::query_as(
        "SELECT (SELECT application_id FROM pragma_application_id),
                (SELECT user_version FROM pragma_user_version),
                (SELECT count(*) FROM sqlite_schema)",
    )
    .fetch_one(connection)
    .await?;
    Ok(match (application, version, objects) {
        (0, 0, 0) => Identity::Empty,
        (APPLICATION_ID, version, _) => Identity::Ours(version),
        _ => Identity::Foreign,
    })
}

/// Brings the database to [`VERSION`]: all of it or nothing.
pub(crate) async fn migrate(connection: &mut SqliteConnection) -> Result<(), Fault> {
    if identity(connection).await? == Identity::Ours(VERSION) {
        return Ok(());
    }
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    // Asked again under the lock: another process may just have done it.
    let from = match identity(&mut transaction).await? {
        Identity::Ours(version) => version,
        Identity::Empty | Identity::Foreign => 0,
    };
    let applied = usize::try_from(from).unwrap_or(MIGRATIONS.len());
    for migration in MIGRATIONS.iter().skip(applied) {
        sqlx::raw_sql(*migration).execute(&mut *transaction).await?;
    }
    // Safe: two constants. PRAGMA takes no bound values.
    sqlx::raw_sql(AssertSqlSafe(format!(
        "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION};"
    )))
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_history_of_the_first_version_is_brought_up_to_date_with_what_it_holds() {
        let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        sqlx::raw_sql(MIGRATIONS[0])
            .execute(&mut connection)
            .await
            .unwrap();
        sqlx::raw_sql(AssertSqlSafe(format!(
            "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 1;
             INSERT INTO machine (id, cpu) VALUES ('m', 'c');"
        )))
        .execute(&mut connection)
        .await
        .unwrap();
        migrate(&mut connection).await.unwrap();
        assert_eq!(
            identity(&mut connection).await.unwrap(),
            Identity::Ours(VERSION)
        );
        let kept: (i64, i64) =
            sqlx::query_as("SELECT (SELECT count(*) FROM machine), (SELECT count(*) FROM folder)")
                .fetch_one(&mut connection)
                .await
                .unwrap();
        assert_eq!(kept, (1, 0));
    }
}
