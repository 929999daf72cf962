//! The whole answer, as `estimate --json` prints it.
#![allow(clippy::unwrap_used, clippy::panic)] // as in any test

use proptest::prelude::*;
use serde_json::{Value, json};
use twospeed_estimate::{
    Allocation, Bandwidth, BandwidthFrom, BandwidthReading, Bytes, BytesPerSecond, ContextSettings,
    Question, Shape, cannot_fit, context_bytes, device, estimate,
};
use twospeed_gguf::{Field, Model, TensorType, Writer, read_from};

fn model(writer: &Writer) -> Model {
    let header = writer.header();
    read_from(&header[..], "model.gguf", header.len() as u64).unwrap()
}

/// Qwen3 8B by its keys, with a file of exactly this size (one tensor stands for all).
fn qwen3_8b(file_bytes: u64) -> Model {
    let mut writer = Writer::new();
    writer
        .set("general.architecture", "qwen3")
        .set("general.name", "Qwen3 8B");
    for (key, value) in [
        ("block_count", 36_u32),
        ("context_length", 40_960),
        ("embedding_length", 4096),
        ("attention.head_count", 32),
        ("attention.head_count_kv", 8),
        ("attention.key_length", 128),
        ("attention.value_length", 128),
        ("vocab_size", 151_936),
    ] {
        writer.set(format!("qwen3.{key}"), value);
    }
    // The same header whatever the tensor's size, so the rest of the file is the tensor.
    let header = |writer: &Writer, rest: u64| {
        let mut writer = writer.clone();
        writer
            .tensor("output.weight", TensorType::I8, &[rest])
            .unwrap();
        writer
    };
    let rest = file_bytes - header(&writer, 1).header().len() as u64;
    model(&header(&writer, rest))
}

/// The article's device.
fn on_orin_nano_super() -> Question {
    let name = "Jetson Orin Nano Super 8GB";
    Question {
        device: Some(name.to_owned()),
        bandwidth: BandwidthFrom::Known(Bandwidth::published(device::find(name).unwrap())),
        ..Question::default()
    }
}

fn json_of(model: &Model, question: &Question) -> Value {
    serde_json::to_value(estimate(model, question)).unwrap()
}

#[test]
fn the_articles_ceilings_come_from_file_sizes_and_the_devices_bandwidth() {
    // 102 GB/s / 1.11, 2.50 and 5.03 GB.
    for (file_bytes, ceiling) in [
        (1_110_000_000, "91.9 tok/s"),
        (2_500_000_000, "40.8 tok/s"),
        (5_030_000_000, "20.3 tok/s"),
    ] {
        let answer = estimate(&qwen3_8b(file_bytes), &on_orin_nano_super());
        assert_eq!(answer.model.file_bytes, Some(Bytes(file_bytes)));
        assert_eq!(
            answer.decode.ceiling_file_tok_s.unwrap().to_string(),
            ceiling
        );
    }
}

#[test]
fn the_answer_has_every_field_by_its_name() {
    let answer = json_of(&qwen3_8b(5_030_000_000), &on_orin_nano_super());
    let memory = &answer["memory"];
    assert_eq!(
        answer["at"],
        json!({
            "prompt": 512, "generate": 128, "depth": 0, "context": 4096, "ubatch": 512,
            "type_k": "f16", "type_v": "f16", "flash_attention": "auto", "parallel": 1,
            "split_kv": false, "outputs": 512, "gpu_layers": -1,
            "device": "Jetson Orin Nano Super 8GB",
            "bandwidth_bytes_s": 102_000_000_000_u64,
            "bandwidth_source": "published: Jetson Orin Nano Super 8GB",
        })
    );
    assert_eq!(answer["model"]["architecture"], "qwen3");
    assert_eq!(answer["model"]["name"], "Qwen3 8B");
    assert_eq!(answer["model"]["file_bytes"], 5_030_000_000_u64);
    assert_eq!(answer["model"]["layers"], 36);
    assert_eq!(answer["model"]["context_length"], 40_960);
    assert_eq!(memory["kv_bytes"], 576 << 20);
    assert_eq!(memory["state_bytes"], 0);
    assert_eq!(memory["output_bytes"], 151_936 * 4);
    assert_eq!(memory["kv_bytes_per_cached_token"], 147_456);
    assert_eq!(memory["source"], "formula");
    // One step of 256 cells at depth 0.
    assert_eq!(answer["decode"]["kv_read_bytes_per_token"], 256 * 147_456);
    assert_eq!(answer["basis"]["calibration"], Value::Null);
    assert_eq!(answer["basis"]["corrected_by_runs"], 0);

    let keys =
        |part: &str| -> Vec<String> { answer[part].as_object().unwrap().keys().cloned().collect() };
    assert_eq!(
        keys("model"),
        [
            "active_parameters",
            "architecture",
            "bits_per_weight",
            "context_length",
            "file_bytes",
            "layers",
            "name",
            "parameters",
            "quantization"
        ]
    );
    assert_eq!(
        keys("memory"),
        [
            "available_bytes",
            "compute_bytes",
            "fits",
            "kv_bytes",
            "kv_bytes_per_cached_token",
            "kv_high_bytes",
            "kv_low_bytes",
            "output_bytes",
            "source",
            "state_bytes",
            "total_bytes",
            "weights_bytes"
        ]
    );
    assert_eq!(
        keys("decode"),
        [
            "breakdown",
            "ceiling_file_tok_s",
            "ceiling_tok_s",
            "expected_high",
            "expected_low",
            "expected_tok_s",
            "kv_read_bytes_per_token",
            "weight_bytes_per_token"
        ]
    );
    assert_eq!(
        keys("prefill"),
        [
            "breakdown",
            "expected_high",
            "expected_low",
            "expected_tok_s",
            "flops_per_token"
        ]
    );
    assert_eq!(keys("basis"), ["calibration", "corrected_by_runs", "notes"]);
}

#[test]
fn what_only_the_engine_or_a_calibration_knows_is_null() {
    let answer = json_of(&qwen3_8b(5_030_000_000), &on_orin_nano_super());
    for (part, field) in [
        ("memory", "compute_bytes"),
        ("memory", "total_bytes"),
        ("memory", "available_bytes"),
        ("memory", "fits"),
    ] {
        assert_eq!(answer[part][field], Value::Null, "{part}.{field}");
    }
    let here = json_of(&qwen3_8b(5_030_000_000), &Question::default());
    assert_eq!(here["decode"]["expected_tok_s"], Value::Null);
    assert_eq!(here["prefill"]["expected_tok_s"], Value::Null);
}

/// Llama 2 7B as Q4_0 with every matrix it has: 32 layers of 4,096 and 11,008, 32,000 words.
fn llama2_7b() -> Model {
    let mut writer = Writer::new();
    writer.set("general.architecture", "llama");
    for (key, value) in [
        ("block_count", 32_u32),
        ("context_length", 4096),
        ("embedding_length", 4096),
        ("feed_forward_length", 11_008),
        ("attention.head_count", 32),
        ("vocab_size", 32_000),
    ] {
        writer.set(format!("llama.{key}"), value);
    }
    let mut matrix = |name: String, rows: u64, columns: u64| {
        writer
            .tensor(&name, TensorType::Q4_0, &[columns, rows])
            .unwrap();
    };
    matrix("token_embd.weight".into(), 32_000, 4096);
    matrix("output.weight".into(), 32_000, 4096);
    for layer in 0..32 {
        for name in ["attn_q", "attn_k", "attn_v", "attn_output"] {
            matrix(format!("blk.{layer}.{name}.weight"), 4096, 4096);
        }
        matrix(format!("blk.{layer}.ffn_gate.weight"), 11_008, 4096);
        matrix(format!("blk.{layer}.ffn_up.weight"), 11_008, 4096);
        matrix(format!("blk.{layer}.ffn_down.weight"), 4096, 11_008);
    }
    model(&writer)
}

fn on(device: &str) -> Question {
    Question {
        device: Some(device.to_owned()),
        bandwidth: BandwidthFrom::Known(Bandwidth::published(device::find(device).unwrap())),
        ..Question::default()
    }
}

#[test]
fn another_device_gets_what_published_measurements_let_expect() {
    // Published with llama-bench: an RTX 4090 reads 512 tokens at 13,944 tok/s and writes 128 at
    // 187.7; an M3 Max (40 cores) 760 and 66.3; an EPYC 9374F with 12 channels 224 and 54.7.
    for (device, prefill, decode) in [
        ("RTX 4090", 13_944.43, 187.7),
        ("Apple M3 Max (40-core GPU)", 759.7, 66.31),
        ("EPYC 9004 12-channel DDR5-4800", 223.88, 54.68),
    ] {
        let answer = json_of(&llama2_7b(), &on(device));
        for (phase, measured) in [("prefill", prefill), ("decode", decode)] {
            let number = |field: &str| answer[phase][field].as_f64().unwrap();
            assert!(
                number("expected_low") < measured && measured < number("expected_high"),
                "{device} {phase}: {measured}, {}",
                answer[phase]
            );
            assert!(number("expected_low") < number("expected_tok_s"));
        }
        let decode = &answer["decode"];
        assert!(decode["expected_high"].as_f64() <= decode["ceiling_tok_s"].as_f64());
        let notes = answer["basis"]["notes"].to_string();
        for phase in ["Decode", "Prefill"] {
            assert!(notes.contains(&format!("{phase} on ")), "{notes}");
        }
        assert_eq!(answer["basis"]["calibration"], Value::Null);
    }
}

#[test]
fn of_a_device_that_cannot_hold_the_model_nothing_is_expected() {
    // 3.79 GB and a cache of 2 GiB on 4 GB.
    let answer = json_of(&llama2_7b(), &on("Jetson Nano 4GB"));
    assert_eq!(answer["decode"]["expected_tok_s"], Value::Null);
    assert_eq!(answer["prefill"]["expected_tok_s"], Value::Null);
    let notes = answer["basis"]["notes"].to_string();
    assert!(
        notes.contains("and Jetson Nano 4GB has 4.00 GiB at most, so no speed is expected there."),
        "{notes}"
    );
}

/// What the engine counts: the closed forms' cache unless `kv` says otherwise.
fn counted(kv: u64) -> Question {
    Question {
        allocation: Some(Allocation {
            weights: Bytes(5_000_000_000),
            kv: Bytes(kv),
            state: Bytes::ZERO,
            compute: Bytes::mib(300),
            output: Bytes(151_936 * 4),
        }),
        available: Some(Bytes(6_000_000_000)),
        ..Question::default()
    }
}

#[test]
fn the_engines_count_is_taken_and_the_total_is_its_sum() {
    let answer = json_of(&qwen3_8b(5_030_000_000), &counted(576 << 20));
    let memory = &answer["memory"];
    assert_eq!(memory["source"], "engine");
    assert_eq!(memory["weights_bytes"], 5_000_000_000_u64);
    assert_eq!(memory["compute_bytes"], 300 << 20);
    let total = 5_000_000_000_u64 + (876 << 20) + 151_936 * 4;
    assert_eq!(memory["total_bytes"], total);
    assert_eq!(memory["fits"], true, "{total} of 6,000,000,000");
    // What only the closed forms say stays.
    assert_eq!(memory["kv_bytes_per_cached_token"], 147_456);
    assert_eq!(answer["decode"]["kv_read_bytes_per_token"], 256 * 147_456);
    let notes = answer["basis"]["notes"].to_string();
    assert!(!notes.contains("engine"), "{notes}");
}

#[test]
fn where_engine_and_closed_forms_differ_the_engines_count_is_shown_with_both() {
    let answer = json_of(&qwen3_8b(5_030_000_000), &counted(1000));
    assert_eq!(answer["memory"]["kv_bytes"], 1000);
    let notes = answer["basis"]["notes"].to_string();
    assert!(
        notes.contains(
            "The engine allocates 1000 bytes for the KV cache where the rules known here give 603979776"
        ),
        "{notes}"
    );
}

#[test]
fn of_an_architecture_known_to_the_engine_alone_its_count_is_enough() {
    let mut writer = Writer::new();
    writer.set("general.architecture", "llama9");
    let answer = json_of(&model(&writer), &counted(1000));
    assert_eq!(answer["memory"]["kv_bytes"], 1000);
    assert!(answer["memory"]["total_bytes"].is_u64());
    assert_eq!(answer["memory"]["kv_low_bytes"], Value::Null);
}

#[test]
fn the_models_own_context_is_shown_as_such() {
    let question = Question {
        context: ContextSettings {
            context: 0,
            ..ContextSettings::default()
        },
        ..Question::default()
    };
    let answer = json_of(&qwen3_8b(5_030_000_000), &question);
    assert_eq!(answer["at"]["context"], 40_960);
    assert_eq!(answer["memory"]["kv_bytes"], 40_960 * 147_456_u64);
    let mut writer = Writer::new();
    writer.set("general.architecture", "llama");
    let answer = json_of(&model(&writer), &question);
    assert_eq!(answer["at"]["context"], Value::Null, "and never 0");
}

#[test]
fn without_a_bandwidth_there_is_no_ceiling() {
    let answer = json_of(&qwen3_8b(5_030_000_000), &Question::default());
    assert_eq!(answer["at"]["bandwidth_bytes_s"], Value::Null);
    assert_eq!(answer["at"]["bandwidth_source"], Value::Null);
    assert_eq!(answer["decode"]["ceiling_file_tok_s"], Value::Null);
    assert_eq!(answer["decode"]["ceiling_tok_s"], Value::Null);
    assert!(answer["decode"]["weight_bytes_per_token"].is_u64());
}

#[test]
fn a_probe_is_read_at_the_size_that_the_model_reads() {
    let question = Question {
        bandwidth: BandwidthFrom::Probe {
            readings: vec![
                BandwidthReading {
                    buffer: Bytes::mib(128),
                    rate: BytesPerSecond(40_000_000_000),
                },
                BandwidthReading {
                    buffer: Bytes::gib(2),
                    rate: BytesPerSecond(12_000_000_000),
                },
            ],
            last_level_cache: Some(Bytes::mib(300)),
        },
        ..Question::default()
    };
    let small = json_of(&qwen3_8b(98_000_000), &question);
    assert_eq!(
        small["at"]["bandwidth_source"],
        "measured: buffer of 128 MiB, nearest to the model's size"
    );
    let large = json_of(&qwen3_8b(5_030_000_000), &question);
    assert_eq!(
        large["at"]["bandwidth_source"],
        "measured: buffer of 2.00 GiB, beyond the last-level cache"
    );
    assert_eq!(large["at"]["bandwidth_bytes_s"], 12_000_000_000_u64);
}

#[test]
fn what_is_known_can_rule_a_fit_out_and_never_promises_it() {
    let fits = |available| {
        let question = Question {
            available: Some(available),
            ..Question::default()
        };
        json_of(&qwen3_8b(5_030_000_000), &question)["memory"]["fits"].clone()
    };
    // 5.03 GB of file and 576 MiB of cache: 5.23 GiB at least.
    assert_eq!(fits(Bytes::gib(5)), json!(false));
    assert_eq!(
        fits(Bytes::gib(6)),
        Value::Null,
        "working buffers are unknown"
    );
}

#[test]
fn an_unknown_architecture_gets_a_range_and_a_name() {
    let mut writer = Writer::new();
    writer.set("general.architecture", "llama9");
    for (key, value) in [
        ("block_count", 2_u32),
        ("embedding_length", 64),
        ("attention.head_count", 1),
        ("attention.sliding_window", 256),
    ] {
        writer.set(format!("llama9.{key}"), value);
    }
    let answer = json_of(&model(&writer), &Question::default());
    assert_eq!(answer["memory"]["kv_bytes"], Value::Null);
    assert_eq!(answer["memory"]["state_bytes"], Value::Null);
    let notes = answer["basis"]["notes"].to_string();
    assert!(
        notes.contains("The architecture \\\"llama9\\\" is not known to the engine."),
        "{notes}"
    );
    // 2 layers x 2 x 64 x 2 bytes = 512 a cell: 256 + 512 = 768 cells, and 4,096.
    assert!(
        notes.contains("the KV cache takes between 384 KiB and 2.00 MiB."),
        "{notes}"
    );
}

#[test]
fn a_missing_key_is_named_and_never_counted_as_nothing() {
    let mut writer = Writer::new();
    writer
        .set("general.architecture", "llama")
        .set("llama.block_count", 2_u32)
        .set("llama.embedding_length", 64_u32);
    let answer = json_of(&model(&writer), &Question::default());
    assert_eq!(answer["memory"]["kv_bytes"], Value::Null);
    let notes = answer["basis"]["notes"].to_string();
    assert!(
        notes.contains("The file does not say llama.attention.head_count."),
        "{notes}"
    );
    assert!(notes.contains("not even a range"), "{notes}");
    // With its projections there is one: rows of 16 and 16 in f16, 256 cells at least.
    for role in ["attn_k", "attn_v"] {
        let name = format!("blk.0.{role}.weight");
        writer.tensor(&name, TensorType::F16, &[64, 16]).unwrap();
    }
    let memory = json_of(&model(&writer), &Question::default())["memory"].clone();
    assert_eq!(memory["kv_bytes"], Value::Null);
    assert_eq!(memory["kv_low_bytes"], 64 * 256);
    assert_eq!(memory["kv_high_bytes"], 64 * 4096);
}

#[test]
fn an_encoder_keeps_nothing_and_does_not_decode() {
    let mut writer = Writer::new();
    writer
        .set("general.architecture", "bert")
        .set("bert.block_count", 2_u32)
        .set("bert.embedding_length", 64_u32);
    writer
        .tensor("token_embd.weight", TensorType::F16, &[64, 100])
        .unwrap();
    let answer = json_of(&model(&writer), &on_orin_nano_super());
    assert_eq!(answer["memory"]["kv_bytes"], 0);
    for field in [
        "ceiling_file_tok_s",
        "ceiling_tok_s",
        "weight_bytes_per_token",
        "kv_read_bytes_per_token",
    ] {
        assert_eq!(answer["decode"][field], Value::Null, "{field}");
    }
}

#[test]
fn a_context_that_the_engine_refuses_is_said_so() {
    let question = Question {
        context: ContextSettings {
            type_v: "q8_0".parse().unwrap(),
            flash_attention: twospeed_estimate::FlashAttention::Off,
            ..ContextSettings::default()
        },
        ..Question::default()
    };
    let answer = json_of(&qwen3_8b(5_030_000_000), &question);
    assert_eq!(answer["memory"]["kv_bytes"], Value::Null);
    let notes = answer["basis"]["notes"].to_string();
    assert!(
        notes.contains("The engine refuses this context: A V cache of type q8_0"),
        "{notes}"
    );
}

const KEYS: [&str; 34] = [
    "block_count",
    "context_length",
    "embedding_length",
    "feed_forward_length",
    "vocab_size",
    "nextn_predict_layers",
    "leading_dense_block_count",
    "full_attention_interval",
    "token_shift_count",
    "shortconv.l_cache",
    "wkv.head_size",
    "kda.head_dim",
    "num_loops",
    "expert_count",
    "expert_used_count",
    "ssm.conv_kernel",
    "ssm.inner_size",
    "ssm.state_size",
    "ssm.group_count",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "attention.key_length_mla",
    "attention.value_length_mla",
    "attention.kv_lora_rank",
    "attention.sliding_window",
    "attention.sliding_window_pattern",
    "attention.shared_kv_layers",
    "attention.recurrent_layers",
    "attention.compress_ratios",
    "attention.indexer.key_length",
    "attention.indexer.types",
    "hyper_connection.count",
];

fn any_value() -> impl Strategy<Value = Field> {
    prop_oneof![
        4 => (0_u32..12).prop_map(Field::from),
        2 => prop_oneof![Just(0), Just(u32::MAX), any::<u32>()].prop_map(Field::from),
        1 => any::<i64>().prop_map(Field::from),
        1 => any::<f32>().prop_map(Field::from),
        1 => any::<bool>().prop_map(Field::from),
        1 => Just(Field::from("text")),
        2 => prop::collection::vec(0_u32..5, 0..14).prop_map(|list| Field::from(&list[..])),
        1 => prop::collection::vec(any::<bool>(), 0..14).prop_map(|list| Field::from(&list[..])),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_a_header_claims_gets_an_answer(
        architecture in 0_usize..153,
        values in prop::collection::vec(prop::option::weighted(0.8, any_value()), KEYS.len()),
        context in prop_oneof![Just(0), 1_u64..100_000, any::<u64>()],
        sequences in prop_oneof![0_u64..5, any::<u64>()],
        depth in prop_oneof![0_u64..10_000, any::<u64>()],
        split in any::<bool>(),
        projected in any::<bool>(),
    ) {
        let known = include_str!("../../../../tests/data/archs/architectures.txt");
        let architecture = known.lines().nth(architecture).unwrap_or("unknown");
        let mut writer = Writer::new();
        writer.set("general.architecture", architecture);
        for (key, value) in KEYS.iter().zip(values) {
            if let Some(value) = value {
                writer.set(format!("{architecture}.{key}"), value);
            }
        }
        writer.tensor("blk.0.ffn_up_exps.weight", TensorType::F16, &[32, 4, 2]).unwrap();
        writer.tensor("output.weight", TensorType::F16, &[32, 4]).unwrap();
        if projected {
            writer.tensor("blk.0.attn_k.weight", TensorType::F16, &[32, 16]).unwrap();
            writer.tensor("blk.0.attn_v.weight", TensorType::F16, &[32, 16]).unwrap();
        }
        let settings = ContextSettings { context, sequences, split, ..ContextSettings::default() };
        let question = Question {
            depth,
            context: settings,
            available: Some(Bytes::gib(1)),
            ..on_orin_nano_super()
        };
        let model = model(&writer);
        let answer = json_of(&model, &question);
        let memory = &answer["memory"];
        let notes = answer["basis"]["notes"].to_string();
        // Where the cache is unknown, a sentence says why, and a range says how unknown.
        if memory["kv_bytes"].is_null() {
            prop_assert!(
                notes.contains("unknown:") || notes.contains("refuses"),
                "{notes}"
            );
            let range = memory["kv_low_bytes"].as_u64().zip(memory["kv_high_bytes"].as_u64());
            match range {
                Some((low, high)) => prop_assert!(low <= high, "{low} to {high}"),
                None => prop_assert!(
                    notes.contains("not even a range") || notes.contains("refuses"),
                    "{notes}"
                ),
            }
        } else {
            prop_assert!(memory["kv_low_bytes"].is_null());
        }
        // What would fit is found for whatever is asked, and takes no time.
        if let Ok(shape) = Shape::from_model(&model)
            && let Ok(Some(refused)) = cannot_fit(&shape, &settings, Bytes::mib(1), Bytes::mib(64))
            && let Some(fitting) = refused.would_fit.context
        {
            let fitting = ContextSettings { context: fitting, ..settings };
            prop_assert!(context_bytes(&shape, &fitting).unwrap() <= Bytes::mib(63));
        }
    }
}
