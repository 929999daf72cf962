//! Columns with their values, side by side: how rows are written and read.

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Arguments, AssertSqlSafe, Encode, Row, Sqlite, SqliteConnection, Type, ValueRef};
use uuid::Uuid;

use crate::error::Fault;

/// The form of every time in the history: text order is time order, nothing is rounded away.
pub(crate) fn time_text(time: Timestamp) -> String {
    format!("{time:.9}")
}

/// Values to write, each next to the name of its column.
#[derive(Default)]
pub(crate) struct Columns {
    names: Vec<&'static str>,
    values: SqliteArguments,
    unknown: Vec<String>,
    fault: Option<Fault>,
}

/// What happens when the row to insert is there already.
pub(crate) enum Existing {
    /// It is an error.
    Refuse,
    /// The stored row stays.
    Keep,
    /// The stored row takes the new values; the column names its key.
    Update(&'static str),
}

impl Columns {
    /// From here on, columns of these names are set to NULL whatever value comes with them.
    pub(crate) fn not_knowing(mut self, names: &[String]) -> Self {
        self.unknown = names.to_vec();
        self
    }

    pub(crate) fn set<'t, T>(mut self, name: &'static str, value: T) -> Self
    where
        T: Encode<'t, Sqlite> + Type<Sqlite>,
    {
        self.names.push(name);
        let added = match self.unknown.iter().any(|unknown| unknown == name) {
            true => self.values.add(None::<i64>),
            false => self.values.add(value),
        };
        if let Err(error) = added {
            self.fail(Fault::Sql(sqlx::Error::Encode(error)));
        }
        self
    }

    /// A count, a size or a duration; SQLite's integers end at 2^63 - 1.
    pub(crate) fn count(self, name: &'static str, value: impl Into<Option<u64>>) -> Self {
        match value.into().map(i64::try_from).transpose() {
            Ok(value) => self.set(name, value),
            Err(_) => {
                let mut refused = self.set(name, None::<i64>);
                refused.fail(Fault::Impossible(format!("{name} is above 2^63")));
                refused
            }
        }
    }

    pub(crate) fn id(self, name: &'static str, id: Uuid) -> Self {
        self.set(name, id.to_string())
    }

    pub(crate) fn time(self, name: &'static str, time: impl Into<Option<Timestamp>>) -> Self {
        self.set(name, time.into().map(time_text))
    }

    /// A word of an enum, as serde spells it.
    pub(crate) fn word<T: Serialize>(self, name: &'static str, value: Option<&T>) -> Self {
        let word = value.map(|value| match serde_json::to_value(value) {
            Ok(serde_json::Value::String(word)) => Ok(word),
            _ => Err(Fault::Impossible(format!("{name} is no word"))),
        });
        match word.transpose() {
            Ok(word) => self.set(name, word),
            Err(fault) => {
                let mut refused = self.set(name, None::<String>);
                refused.fail(fault);
                refused
            }
        }
    }

    /// A document. It is read back at once: JSON has no NaN, and what would not read later is
    /// refused now.
    pub(crate) fn json<T>(self, name: &'static str, value: Option<&T>) -> Self
    where
        T: Serialize + DeserializeOwned,
    {
        let text = value.map(|value| {
            let text = serde_json::to_string(value)?;
            serde_json::from_str::<T>(&text)?;
            Ok::<_, serde_json::Error>(text)
        });
        match text.transpose() {
            Ok(text) => self.set(name, text),
            Err(error) => {
                let mut refused = self.set(name, None::<String>);
                refused.fail(Fault::Impossible(format!(
                    "{name} would not read back, {error}"
                )));
                refused
            }
        }
    }

    fn fail(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
    }

    /// Inserts the row; `false` when it was there already and stays as it is.
    pub(crate) async fn insert(
        self,
        connection: &mut SqliteConnection,
        table: &'static str,
        existing: Existing,
    ) -> Result<bool, Fault> {
        let marks = vec!["?"; self.names.len()].join(", ");
        let conflict = match existing {
            Existing::Refuse => String::new(),
            Existing::Keep => " ON CONFLICT DO NOTHING".to_owned(),
            Existing::Update(key) => {
                let new: Vec<_> = (self.names.iter())
                    .map(|name| format!("{name} = excluded.{name}"))
                    .collect();
                format!(" ON CONFLICT ({key}) DO UPDATE SET {}", new.join(", "))
            }
        };
        let names = self.names.join(", ");
        let sql = format!("INSERT INTO {table} ({names}) VALUES ({marks}){conflict}");
        Ok(self.execute(connection, sql).await? > 0)
    }

    /// Updates the row with this id; `false` when there is none.
    pub(crate) async fn update(
        mut self,
        connection: &mut SqliteConnection,
        table: &'static str,
        id: Uuid,
    ) -> Result<bool, Fault> {
        let pairs: Vec<_> = self
            .names
            .iter()
            .map(|name| format!("{name} = ?"))
            .collect();
        let sql = format!("UPDATE {table} SET {} WHERE id = ?", pairs.join(", "));
        self = self.id("id", id);
        Ok(self.execute(connection, sql).await? > 0)
    }

    async fn execute(self, connection: &mut SqliteConnection, sql: String) -> Result<u64, Fault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        // Safe: table and columns are names in this crate's source; values are bound.
        let done = sqlx::query_with(AssertSqlSafe(sql), self.values)
            .execute(connection)
            .await?;
        Ok(done.rows_affected())
    }
}

/// A row that is read by column names. A NULL where a value must be is named.
#[derive(Clone, Copy)]
pub(crate) struct Cells<'r>(pub(crate) &'r SqliteRow);

impl<'r> Cells<'r> {
    pub(crate) fn maybe<T>(self, name: &str) -> Result<Option<T>, Fault>
    where
        T: sqlx::Decode<'r, Sqlite> + Type<Sqlite>,
    {
        Ok(self.0.try_get(name)?)
    }

    pub(crate) fn get<T>(self, name: &str) -> Result<T, Fault>
    where
        T: sqlx::Decode<'r, Sqlite> + Type<Sqlite>,
    {
        self.maybe(name)?.ok_or_else(|| missing(name))
    }

    pub(crate) fn maybe_count(self, name: &str) -> Result<Option<u64>, Fault> {
        let value: Option<i64> = self.maybe(name)?;
        value
            .map(|value| u64::try_from(value).map_err(|_| unreadable(name, "it is negative")))
            .transpose()
    }

    pub(crate) fn count(self, name: &str) -> Result<u64, Fault> {
        self.maybe_count(name)?.ok_or_else(|| missing(name))
    }

    pub(crate) fn id(self, name: &str) -> Result<Uuid, Fault> {
        let text: &str = self.get(name)?;
        text.parse().map_err(|error| unreadable(name, error))
    }

    pub(crate) fn maybe_time(self, name: &str) -> Result<Option<Timestamp>, Fault> {
        let text: Option<&str> = self.maybe(name)?;
        text.map(|text| text.parse().map_err(|error| unreadable(name, error)))
            .transpose()
    }

    pub(crate) fn time(self, name: &str) -> Result<Timestamp, Fault> {
        self.maybe_time(name)?.ok_or_else(|| missing(name))
    }

    pub(crate) fn maybe_word<T: DeserializeOwned>(self, name: &str) -> Result<Option<T>, Fault> {
        let word: Option<String> = self.maybe(name)?;
        word.map(|word| {
            serde_json::from_value(serde_json::Value::String(word))
                .map_err(|error| unreadable(name, error))
        })
        .transpose()
    }

    pub(crate) fn word<T: DeserializeOwned>(self, name: &str) -> Result<T, Fault> {
        self.maybe_word(name)?.ok_or_else(|| missing(name))
    }

    pub(crate) fn json<T: DeserializeOwned>(self, name: &str) -> Result<Option<T>, Fault> {
        let text: Option<&str> = self.maybe(name)?;
        text.map(|text| serde_json::from_str(text).map_err(|error| unreadable(name, error)))
            .transpose()
    }

    pub(crate) fn is_blob(self, name: &str) -> Result<bool, Fault> {
        use sqlx::TypeInfo;
        let value = self.0.try_get_raw(name)?;
        Ok(value.type_info().name() == "BLOB")
    }
}

fn missing(name: &str) -> Fault {
    unreadable(name, "it is unknown")
}

fn unreadable(name: &str, reason: impl std::fmt::Display) -> Fault {
    Fault::Unreadable(format!("{name}, {reason}"))
}
