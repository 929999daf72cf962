//! A row of llama-bench: fields to a test.

use jiff::{SignedDuration, Timestamp};
use twospeed_engine::protocol::Sample;
use twospeed_engine::{FlashAttention, Settings, TestSpec};
use twospeed_measure::{Conditions, Kind, SampleRecord, TestEnd, TestRecord, TestStatus};
use uuid::Uuid;

use super::fields::Fields;
use super::{ceiling, identity, markdown, model};
use crate::test::{Reported, Suspect, Test, Told};

/// Backends by the name of the field that once said whether they were there.
const BACKENDS: [(&str, &str); 9] = [
    ("cuda", "CUDA"),
    ("opencl", "OpenCL"),
    ("vulkan", "Vulkan"),
    ("kompute", "Kompute"),
    ("metal", "Metal"),
    ("sycl", "SYCL"),
    ("rpc", "RPC"),
    ("gpu_blas", "GPU BLAS"),
    ("blas", "BLAS"),
];

/// Errors: a clause that says why the row is no result.
pub(super) fn test(mut fields: Fields) -> Result<Test, String> {
    let said = fields.said();
    let spec = spec(&mut fields)?;
    let samples_ns = samples(&mut fields)?;
    let reported = reported(&mut fields)?;
    if samples_ns.is_empty() && reported.avg_ts.is_none() {
        return Err("it tells no speed: avg_ts and samples_ns are missing".into());
    }
    let mut unknown = vec!["warmup".to_owned(), "ended_at".to_owned()];
    let started_at = started_at(&mut fields);
    let told = told(&mut fields)?;
    let path = fields.text("model_filename");
    let model = model::of(&told, path.as_deref(), &mut unknown);
    let settings = settings(&mut fields, &mut unknown);
    if started_at.is_none() {
        unknown.push("started_at".into());
    }
    if samples_ns.is_empty() {
        unknown.push("repetitions".into());
    }
    let id = identity::id(started_at, &["llama-bench", &said]);
    let record = TestRecord {
        id,
        run: Uuid::nil(),
        position: 0,
        model,
        spec,
        kind: Kind::Speed,
        settings,
        repetitions: u32::try_from(samples_ns.len()).unwrap_or(u32::MAX).max(1),
        warmup: true,
        started_at: started_at.unwrap_or_default(),
    };
    let samples = sample_records(&record, &samples_ns);
    let mut test = Test {
        end: Some(done(&record)),
        reported: Some(reported).filter(|_| samples.is_empty()),
        samples,
        unknown,
        told: Some(told),
        suspect: None,
        extra: fields.rest(),
        record,
    };
    let told = test.told.clone().unwrap_or_default();
    test.suspect = ceiling::reason(&test, &told).map(|reason| Suspect {
        reason,
        allowed_at: None,
    });
    Ok(test)
}

/// The end of a row's test: it was done, and nothing else is told.
pub(super) fn done(record: &TestRecord) -> TestEnd {
    TestEnd {
        test: record.id,
        status: TestStatus::Done,
        ended_at: record.started_at,
        worker: None,
        loaded: None,
        placement: None,
        anchor_before_ns: None,
        anchor_after_ns: None,
        state_before: None,
        state_after: None,
        peak_rss_bytes: None,
        warnings: Vec::new(),
    }
}

fn spec(fields: &mut Fields) -> Result<TestSpec, String> {
    // Tables name the test, and some people's copies of other formats do.
    if !fields.has("n_prompt")
        && let Some(name) = fields.text("test")
    {
        let tokens = markdown::test(&name)?;
        let tokens = |at: usize| tokens[at].1.parse::<u32>().unwrap_or_default();
        return timed(tokens(0), tokens(1), tokens(2));
    }
    let n_prompt = fields.count("n_prompt")?.ok_or("n_prompt is missing")?;
    let n_gen = fields.count("n_gen")?.ok_or("n_gen is missing")?;
    // Until 2025 there was no depth: every test began with an empty cache.
    timed(n_prompt, n_gen, fields.count("n_depth")?.unwrap_or(0))
}

fn timed(n_prompt: u32, n_gen: u32, n_depth: u32) -> Result<TestSpec, String> {
    match (n_prompt, n_gen) {
        (0, 0) => Err("it times no tokens: n_prompt and n_gen are 0".into()),
        _ => Ok(TestSpec {
            n_prompt,
            n_gen,
            n_depth,
        }),
    }
}

/// Durations of the repetitions; empty where the format has none. Their speeds follow from them.
fn samples(fields: &mut Fields) -> Result<Vec<u64>, String> {
    for speed in fields.list("samples_ts").unwrap_or_default() {
        if speed.as_f64().is_none_or(|speed| !speed.is_finite()) {
            return Err(format!("samples_ts holds {speed}, which is no number"));
        }
    }
    let list = fields.list("samples_ns").unwrap_or_default();
    list.iter()
        .map(|ns| match ns.as_u64() {
            Some(0) => Err("a sample took no time".to_owned()),
            Some(ns) => Ok(ns),
            None => Err(format!("samples_ns holds {ns}, which is no duration")),
        })
        .collect()
}

fn reported(fields: &mut Fields) -> Result<Reported, String> {
    let avg_ns = fields.real("avg_ns")?;
    let avg_ts = fields.real("avg_ts")?;
    for (name, value) in [("avg_ns", avg_ns), ("avg_ts", avg_ts)] {
        if let Some(value) = value.filter(|value| *value <= 0.0) {
            return Err(format!("{name} is {value}: nothing was measured"));
        }
    }
    // They print 0 where there is a single repetition, which has no spread.
    let spread = |value: Option<f64>| value.filter(|value| *value > 0.0);
    Ok(Reported {
        avg_ns,
        stddev_ns: spread(fields.real("stddev_ns")?),
        avg_ts,
        stddev_ts: spread(fields.real("stddev_ts")?),
    })
}

fn started_at(fields: &mut Fields) -> Option<Timestamp> {
    let text = fields.text("test_time")?;
    text.parse().ok()
}

fn told(fields: &mut Fields) -> Result<Told, String> {
    let backends = fields.text("backends").or_else(|| old_backends(fields));
    Ok(Told {
        build_commit: fields.text("build_commit"),
        build_number: fields.number("build_number"),
        cpu_info: fields.text("cpu_info"),
        gpu_info: fields.text("gpu_info"),
        backends,
        model_type: fields.text("model_type"),
        model_size: fields
            .number::<u64>("model_size")
            .or_else(|| rounded(fields, "size")),
        model_n_params: fields
            .number::<u64>("model_n_params")
            .or_else(|| rounded(fields, "params")),
    })
}

/// The backends of a row from before there was a field for them.
fn old_backends(fields: &mut Fields) -> Option<String> {
    let mut any = false;
    let mut names = Vec::new();
    for (field, name) in BACKENDS {
        if let Some(there) = fields.flag(field) {
            any = true;
            names.extend(there.then_some(name));
        }
    }
    any.then(|| match names.is_empty() {
        true => "CPU".to_owned(),
        false => names.join(","),
    })
}

/// A size or a number of parameters as a table rounds it: `92.10 MiB`, `134.52 M`.
fn rounded(fields: &mut Fields, name: &str) -> Option<u64> {
    let text = fields.text(name)?;
    let (number, unit) = text.split_once(' ')?;
    let unit = match unit {
        "MiB" => 1_048_576.0,
        "GiB" => 1_073_741_824.0,
        "K" => 1e3,
        "M" => 1e6,
        "B" => 1e9,
        _ => return None,
    };
    let value = super::number::real(number).ok()? * unit;
    (value >= 0.0).then_some(value.round() as u64)
}

/// The settings that the row tells; the names of the others go to `unknown`.
pub(super) fn settings(fields: &mut Fields, unknown: &mut Vec<String>) -> Settings {
    let mut settings = Settings::default();
    let mut set = Teller { unknown };
    set.to("n_batch", &mut settings.n_batch, fields.positive("n_batch"));
    set.to(
        "n_ubatch",
        &mut settings.n_ubatch,
        fields.positive("n_ubatch"),
    );
    set.to(
        "n_threads",
        &mut settings.n_threads,
        fields.positive("n_threads"),
    );
    set.to("cpu_mask", &mut settings.cpu_mask, fields.text("cpu_mask"));
    set.to(
        "cpu_strict",
        &mut settings.cpu_strict,
        fields.flag("cpu_strict"),
    );
    set.to("poll", &mut settings.poll, fields.number("poll"));
    let old_cache = old_cache_type(fields);
    let type_k = fields.text("type_k").or_else(|| old_cache.clone());
    set.to("type_k", &mut settings.type_k, type_k);
    set.to(
        "type_v",
        &mut settings.type_v,
        fields.text("type_v").or(old_cache),
    );
    set.to(
        "n_gpu_layers",
        &mut settings.n_gpu_layers,
        fields.number("n_gpu_layers"),
    );
    set.to(
        "n_cpu_moe",
        &mut settings.n_cpu_moe,
        fields.number("n_cpu_moe"),
    );
    set.to(
        "split_mode",
        &mut settings.split_mode,
        fields.text("split_mode"),
    );
    set.to(
        "main_gpu",
        &mut settings.main_gpu,
        fields.number("main_gpu"),
    );
    set.to(
        "no_kv_offload",
        &mut settings.no_kv_offload,
        fields.flag("no_kv_offload"),
    );
    set.to(
        "flash_attn",
        &mut settings.flash_attn,
        flash_attention(fields),
    );
    set.to("devices", &mut settings.devices, fields.text("devices"));
    set.to(
        "tensor_split",
        &mut settings.tensor_split,
        fields.text("tensor_split"),
    );
    let overrides = fields.text("tensor_buft_overrides");
    set.to(
        "tensor_buft_overrides",
        &mut settings.tensor_buft_overrides,
        overrides,
    );
    let load_mode = fields.text("load_mode").or_else(|| old_load_mode(fields));
    set.to("load_mode", &mut settings.load_mode, load_mode);
    set.to(
        "lazy_mode",
        &mut settings.lazy_mode,
        fields.text("lazy_mode"),
    );
    set.to(
        "embeddings",
        &mut settings.embeddings,
        fields.flag("embeddings"),
    );
    set.to(
        "no_op_offload",
        &mut settings.no_op_offload,
        fields.flag("no_op_offload"),
    );
    set.to("no_host", &mut settings.no_host, fields.flag("no_host"));
    set.to("repack", &mut settings.repack, fields.flag("repack"));
    set.to(
        "fit_target",
        &mut settings.fit_target,
        fields.number("fit_target"),
    );
    set.to(
        "fit_min_ctx",
        &mut settings.fit_min_ctx,
        fields.number("fit_min_ctx"),
    );
    set.to(
        "n_outputs",
        &mut settings.n_outputs,
        fields.number("n_outputs"),
    );
    set.to("prio", &mut settings.prio, fields.number("prio"));
    set.to("numa", &mut settings.numa, fields.text("numa"));
    settings
}

/// Sets what is told and notes what is not.
struct Teller<'a> {
    unknown: &'a mut Vec<String>,
}

impl Teller<'_> {
    fn to<T>(&mut self, name: &str, setting: &mut T, told: Option<T>) {
        match told {
            Some(told) => *setting = told,
            None => self.unknown.push(name.to_owned()),
        }
    }
}

/// A number today (-1, 0, 1), once a boolean.
fn flash_attention(fields: &mut Fields) -> Option<FlashAttention> {
    if let Some(on) = fields.flag("flash_attn") {
        return Some(match on {
            true => FlashAttention::On,
            false => FlashAttention::Off,
        });
    }
    let is_auto = |text: &str| ["-1", "auto"].contains(&text);
    fields.word("flash_attn", |text| {
        is_auto(text).then_some(FlashAttention::Auto)
    })
}

/// How the file was read, from before there was one field for it.
fn old_load_mode(fields: &mut Fields) -> Option<String> {
    let mapped = fields.flag("use_mmap");
    let direct = fields.flag("use_direct_io");
    let mode = match (mapped, direct) {
        (_, Some(true)) => "dio",
        (Some(true), _) => "mmap",
        (Some(false), _) => "none",
        (None, _) => return None,
    };
    Some(mode.to_owned())
}

/// The type of the cache, from before it could be chosen freely.
fn old_cache_type(fields: &mut Fields) -> Option<String> {
    let half = fields.flag("f16_kv")?;
    Some(if half { "f16" } else { "f32" }.to_owned())
}

fn sample_records(record: &TestRecord, samples_ns: &[u64]) -> Vec<SampleRecord> {
    let mut at = record.started_at;
    samples_ns
        .iter()
        .zip(0..)
        .map(|(ns, index)| {
            let end = at.checked_add(SignedDuration::from_nanos(i64::try_from(*ns).unwrap_or(0)));
            at = end.unwrap_or(at);
            SampleRecord {
                test: record.id,
                sample: Sample {
                    index,
                    ns: *ns,
                    involuntary_switches: None,
                    major_faults: None,
                    reading: None,
                },
                at,
                conditions: Conditions::default(),
            }
        })
        .collect()
}
