//! A row of llama-batched-bench: one run with sequences side by side.

use twospeed_engine::TestSpec;
use twospeed_engine::protocol::{Reading, Sample, UsersReading};
use twospeed_measure::{Conditions, Kind, SampleRecord, TestRecord};
use uuid::Uuid;

use super::fields::Fields;
use super::{bench, identity, model};
use crate::test::{Test, Told};

/// What follows from the other fields: tokens in the cache and speeds.
const DERIVED: [&str; 5] = ["n_kv", "speed_pp", "speed_tg", "speed", "t"];

/// Errors: a clause that says why the row is no result.
pub(super) fn test(mut fields: Fields) -> Result<Test, String> {
    let said = fields.said();
    let mut needed = |name: &str| {
        fields
            .count(name)?
            .ok_or_else(|| format!("{name} is missing"))
    };
    let spec = TestSpec {
        n_prompt: needed("pp")?,
        n_gen: needed("tg")?,
        n_depth: 0,
    };
    let users = needed("pl")?;
    if users == 0 || spec.tokens() == 0 {
        return Err("it times no tokens: pl, or pp and tg, are 0".into());
    }
    for name in DERIVED {
        // Where no token is written, its speed is 0/0; that says nothing of the rest.
        if !(name == "speed_tg" && spec.n_gen == 0 || name == "speed_pp" && spec.n_prompt == 0) {
            fields.real(name)?;
        } else {
            fields.text(name);
        }
    }
    let prefill_ns = nanoseconds(&mut fields, "t_pp", spec.n_prompt > 0)?;
    let decode_ns = nanoseconds(&mut fields, "t_tg", spec.n_gen > 0)?;
    let mut unknown: Vec<String> = ["warmup", "started_at", "ended_at", "split_kv"]
        .map(str::to_owned)
        .into();
    let shared_prompt = fields
        .flag("is_pp_shared")
        .ok_or("is_pp_shared is missing")?;
    let told = Told::default();
    let record = TestRecord {
        id: identity::id(None, &["llama-batched-bench", &said]),
        run: Uuid::nil(),
        position: 0,
        model: model::of(&told, None, &mut unknown),
        spec,
        kind: Kind::Users {
            users,
            split_kv: false,
            shared_prompt,
        },
        settings: bench::settings(&mut fields, &mut unknown),
        repetitions: 1,
        warmup: true,
        started_at: jiff::Timestamp::default(),
    };
    let sample = Sample {
        index: 0,
        ns: prefill_ns + decode_ns,
        involuntary_switches: None,
        major_faults: None,
        reading: Some(Reading::Users(UsersReading {
            prefill_ns,
            decode_ns,
            ttft_ns: Vec::new(),
        })),
    };
    Ok(Test {
        end: Some(bench::done(&record)),
        samples: vec![SampleRecord {
            test: record.id,
            sample,
            at: record.started_at,
            conditions: Conditions::default(),
        }],
        unknown,
        reported: None,
        told: None,
        suspect: None,
        extra: fields.rest(),
        record,
    })
}

/// Seconds as nanoseconds.
fn nanoseconds(fields: &mut Fields, name: &str, timed: bool) -> Result<u64, String> {
    let seconds = fields
        .real(name)?
        .ok_or_else(|| format!("{name} is missing"))?;
    if seconds < 0.0 || timed && seconds == 0.0 {
        return Err(format!("{name} is {seconds}: nothing was measured"));
    }
    Ok((seconds * 1e9).round() as u64)
}
