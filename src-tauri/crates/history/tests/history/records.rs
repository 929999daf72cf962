//! Records with every field set, and no two fields alike, so that none can stand in for another.

use jiff::{Timestamp, ToSpan};
use twospeed_engine::protocol::{
    Ability, Buffer, BufferUse, Device, DeviceKind, EngineBuild, Hello, Loaded, PageCache,
    Placement, Sample, Variant,
};
use twospeed_engine::settings::ModelPath;
use twospeed_engine::{FlashAttention, Settings, TestSpec};
use twospeed_measure::machine::{Machine, MachineState};
use twospeed_measure::model::MeasuredModel;
use twospeed_measure::warning::Warning;
use twospeed_measure::{
    Plan, PlannedTest, RunRecord, SampleRecord, TestEnd, TestRecord, TestStatus,
};
use uuid::Uuid;

pub fn at(seconds: i64) -> Timestamp {
    let start: Timestamp = "2026-11-30T22:11:51.000000001Z".parse().unwrap();
    start + seconds.seconds()
}

pub fn machine() -> Machine {
    Machine {
        id: "5f2c".into(),
        name: Some("bench <1>".into()),
        cpu: "Intel(R) Xeon(R) Processor".into(),
        physical_cores: Some(2),
        logical_cores: Some(4),
        last_level_cache_bytes: Some(314_572_800),
        memory_bytes: Some(25_769_803_776),
        os: "Debian 12, Linux 6.1".into(),
    }
}

pub fn model(fingerprint: &str, name: &str) -> MeasuredModel {
    MeasuredModel {
        fingerprint: fingerprint.into(),
        path: ModelPath("/models/smol \"q\".gguf".into()),
        name: name.into(),
        architecture: Some("llama".into()),
        quantization: Some("Q4_1".into()),
        file_bytes: 98_000_001,
        parameters: 134_515_008,
        active_parameters: Some(134_515_007),
        weight_bytes_per_token: Some(96_576_768),
        ability: Some(Ability::Generates),
        synthetic: false,
    }
}

pub fn settings() -> Settings {
    Settings {
        n_batch: 2047,
        n_ubatch: 511,
        n_threads: 3,
        cpu_mask: "0x3".into(),
        cpu_strict: true,
        poll: 51,
        type_k: "q8_0".into(),
        type_v: "q4_0".into(),
        n_gpu_layers: -1,
        n_cpu_moe: 5,
        split_mode: "row".into(),
        main_gpu: 6,
        no_kv_offload: true,
        flash_attn: FlashAttention::On,
        devices: "Vulkan0/CPU".into(),
        tensor_split: "0.25/0.75".into(),
        tensor_buft_overrides: "exps=CPU".into(),
        load_mode: "mmap+mlock".into(),
        lazy_mode: "off".into(),
        embeddings: true,
        no_op_offload: true,
        no_host: true,
        repack: false,
        fit_target: 7,
        fit_min_ctx: 8,
        n_outputs: 9,
        prio: -1,
        numa: "distribute".into(),
    }
}

pub fn spec(n_prompt: u32, n_gen: u32) -> TestSpec {
    TestSpec {
        n_prompt,
        n_gen,
        n_depth: 4096,
    }
}

pub fn run() -> RunRecord {
    RunRecord {
        id: Uuid::now_v7(),
        started_at: at(0),
        machine: machine(),
        app_version: "0.1.0".into(),
        preset: "quick".into(),
        owner_pid: std::process::id(),
        owner_started: twospeed_measure::platform::own_start(),
        plan: Some(Plan {
            preset: "quick".into(),
            tests: vec![PlannedTest {
                model: model("aa", "Smol"),
                settings: settings(),
                spec: spec(512, 0),
                kind: twospeed_measure::Kind::Speed,
                variant: Some("haswell".into()),
            }],
            repetitions: 3,
            warmup: true,
            delay_ms: 4,
            page_cache: PageCache::Warm,
            anchor: true,
            seed: 42,
            until: None,
            order: twospeed_measure::plan::Order::OneByOne,
        }),
    }
}

pub fn test(run: Uuid, position: u32, model: MeasuredModel, spec: TestSpec) -> TestRecord {
    TestRecord {
        id: Uuid::now_v7(),
        run,
        position,
        model,
        spec,
        kind: twospeed_measure::Kind::Speed,
        settings: settings(),
        repetitions: 3,
        warmup: true,
        started_at: at(i64::from(position) * 60 + 1),
    }
}

pub fn sample(test: &TestRecord, index: u32) -> SampleRecord {
    SampleRecord {
        test: test.id,
        sample: Sample {
            index,
            ns: 112_446_087 + u64::from(index),
            involuntary_switches: Some(10 + u64::from(index)),
            major_faults: (index > 0).then_some(20),
            reading: None,
        },
        at: test.started_at + i64::from(index + 1).seconds(),
        conditions: twospeed_measure::Conditions::default(),
    }
}

pub fn engine() -> EngineBuild {
    EngineBuild {
        build_number: 11434,
        build_commit: "unknown".into(),
        crate_version: "0.1.161".into(),
    }
}

pub fn variant(name: &str, score: i32) -> Variant {
    Variant {
        name: name.into(),
        score,
    }
}

pub fn end(test: &TestRecord, status: TestStatus) -> TestEnd {
    TestEnd {
        test: test.id,
        status,
        ended_at: test.started_at + 30.seconds(),
        worker: Some(Hello {
            protocol: 1,
            engine: engine(),
            variant: variant("icelake", 64),
            variants: vec![variant("icelake", 64), variant("haswell", 32)],
            devices: vec![Device {
                name: "CPU".into(),
                description: "the processor".into(),
                kind: DeviceKind::Cpu,
                memory_total: Some(1),
                memory_free: None,
            }],
            cpu_info: "Xeon".into(),
            gpu_info: "none".into(),
            backends: "CPU".into(),
            system_info: "AVX512 = 1".into(),
        }),
        loaded: Some(Loaded {
            load_ns: 123_456_789,
            resident_before: Some(0.7),
            page_cache: PageCache::Drop,
            model_type: "llama 256M Q4_1".into(),
            model_size: 96_576_768,
            model_n_params: 134_515_009,
            n_layer: 30,
            n_ctx_train: 8192,
            n_vocab: 49_152,
            ability: Ability::Generates,
            recurrent: true,
        }),
        placement: Some(Placement {
            context_ns: 55_000,
            n_ctx: 4864,
            offloaded_layers: Some(0),
            total_layers: Some(31),
            flash_attention: Some(false),
            buffers: vec![Buffer {
                device: "CPU_Mapped".into(),
                holds: BufferUse::Model,
                bytes: 96_000_000,
            }],
        }),
        anchor_before_ns: Some(300_000_001),
        anchor_after_ns: Some(300_000_002),
        state_before: Some(MachineState {
            load_1m: Some(0.1),
            ..MachineState::default()
        }),
        state_after: Some(MachineState {
            load_1m: Some(1.0 / 3.0),
            swap_used_bytes: Some(0),
            ..MachineState::default()
        }),
        peak_rss_bytes: Some(234_567_890),
        warnings: vec![Warning::SlowFirstSample { by: 3.1 }, Warning::OnBattery],
    }
}

/// What ends a test of which nothing but its end is known.
pub fn bare_end(test: &TestRecord, status: TestStatus) -> TestEnd {
    TestEnd {
        worker: None,
        loaded: None,
        placement: None,
        anchor_before_ns: None,
        anchor_after_ns: None,
        state_before: None,
        state_after: None,
        peak_rss_bytes: None,
        warnings: Vec::new(),
        ..end(test, status)
    }
}
