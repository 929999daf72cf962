//! Files as people really have them: mixed with other text, cut, changed by editors, old and new.

use serde_json::{Value, json};
use twospeed_engine::FlashAttention;
use twospeed_history::{HistoryError, Imported, LatestFilter, Test};

use crate::foreign::{Desk, sample, tests_of};
use crate::records;

/// The first row of a JSON sample, changed.
fn row(change: impl FnOnce(&mut Value)) -> Value {
    let mut rows: Vec<Value> = serde_json::from_str(&sample("plain.json")).unwrap();
    let mut row = rows.swap_remove(0);
    change(&mut row);
    row
}

/// What came of a file, and the tests that it gave.
async fn imported(file: impl Into<Vec<u8>>) -> (Imported, Vec<Test>) {
    let desk = Desk::new().await;
    let imported = desk.import(file).await;
    (imported, desk.tests().await)
}

fn rejected(imported: &Imported) -> Vec<(usize, &str)> {
    let parts = imported.rejected.iter();
    parts
        .map(|part| (part.line.unwrap(), part.reason.as_str()))
        .collect()
}

#[tokio::test]
async fn lines_that_a_program_prints_before_and_between_do_no_harm() {
    let banner =
        "ggml_cuda_init: found 1 CUDA devices:\n  Device 0: NVIDIA {RTX} \"4090\", VMM: yes\n";
    for ending in ["json", "jsonl", "csv", "md", "sql"] {
        let file = sample(&format!("plain.{ending}"));
        let (found, tests) = imported(format!("{banner}{file}{banner}")).await;
        assert!(found.rejected.is_empty(), "{ending}: {:?}", found.rejected);
        assert_eq!(tests.len(), 4, "{ending}");
    }
    let warned = sample("plain.json").replacen(
        "    \"n_prompt\": 32",
        "warning: slow\n    \"n_prompt\": 32",
        1,
    );
    assert_eq!(tests_of(warned).await.len(), 4);
}

#[tokio::test]
async fn rows_that_differ_in_a_field_nobody_knows_are_two_results() {
    let rows = json!([
        row(|row| row["swa_full"] = json!(0)),
        row(|row| row["swa_full"] = json!(1)),
        row(|row| row["moe"] = json!({"cache": [1, null]})),
    ]);
    let desk = Desk::new().await;
    desk.import(rows.to_string()).await;
    let runs = desk.runs().await;
    let tests = &runs[0].tests;
    assert_eq!(tests.len(), 3);
    assert!(!tests[0].same_settings(&tests[1]) && !tests[1].same_settings(&tests[2]));
    // They are written again, and read again they are the same.
    let rows: Vec<_> = tests
        .iter()
        .filter_map(twospeed_history::llama_bench::Row::of_test)
        .collect();
    for format in ["json", "jsonl", "csv", "sql"] {
        let mut file = Vec::new();
        let mut writer = twospeed_history::llama_bench::format(format).unwrap();
        twospeed_history::llama_bench::write(writer.as_mut(), &rows, &mut file).unwrap();
        let text = String::from_utf8(file).unwrap();
        assert!(text.contains("swa_full") && text.contains("moe"), "{text}");
        let again = tests_of(text).await;
        assert!(!again[0].same_settings(&again[1]), "{format}");
        assert_eq!(again.len(), 3, "{format}");
    }
}

#[tokio::test]
async fn the_tables_old_name_is_read_and_another_tables_rows_are_not() {
    let file = sample("plain.sql");
    let old = file.replace("llama_bench", "test");
    assert_eq!(tests_of(old).await.len(), 4);
    let (found, tests) = imported(format!("{file}INSERT INTO users (a) VALUES ('1');\n")).await;
    assert_eq!(tests.len(), 4);
    assert!(
        rejected(&found)[0].1.contains("users"),
        "{:?}",
        found.rejected
    );
}

#[tokio::test]
async fn a_name_whose_letters_were_lost_is_marked() {
    let path = "\\uffff".to_owned() + "f";
    let text = row(|row| row["model_filename"] = json!("m/caf@@.gguf"))
        .to_string()
        .replace('@', &path);
    let (found, tests) = imported(text).await;
    assert_eq!(tests[0].record.model.name, "caf\u{fffd}\u{fffd}");
    assert_eq!(found.notes.len(), 1, "{:?}", found.notes);
    let whole = row(|row| row["model_filename"] = json!("m/café.gguf")).to_string();
    assert_eq!(
        tests_of(whole).await[0].record.id,
        tests[0].record.id,
        "the same row, from another machine"
    );
}

#[tokio::test]
async fn quotes_in_a_path_end_nothing() {
    let file = sample("plain.sql");
    let path = "models/SmolLM2-135M-Instruct.Q4_1.gguf";
    for (inside, read) in [
        ("it's.gguf", "it's.gguf"),
        ("it''s.gguf", "it's.gguf"),
        ("a\\b", "a\\b"),
    ] {
        let tests = tests_of(file.replace(path, inside)).await;
        assert_eq!(tests[0].record.model.path.0.to_str(), Some(read));
    }
    let attack = file.replacen(path, "x'); DROP TABLE sample; --.gguf", 1);
    let (found, tests) = imported(attack).await;
    assert_eq!(tests.len(), 3);
    let (line, reason) = rejected(&found)[0];
    assert_eq!(line, 46, "the first INSERT of the sample");
    assert!(reason.contains("quote"), "{reason}");
    let csv = sample("plain.csv").replace(path, "a \"\"b\"\", c.gguf");
    assert_eq!(tests_of(csv).await[0].record.model.name, "a \"b\", c");
}

#[tokio::test]
async fn a_table_of_only_a_header_gives_no_rows_and_no_fault() {
    let header: String = sample("plain.md").split_inclusive('\n').take(2).collect();
    let (found, tests) = imported(header.clone()).await;
    assert_eq!((tests.len(), found.rejected.len()), (0, 0));
    assert!(found.notes[0].contains("no rows"), "{:?}", found.notes);
    let (found, tests) = imported(format!("{header}\n{}", sample("plain.md"))).await;
    assert_eq!((tests.len(), found.rejected.len()), (4, 0));
    let csv: String = sample("plain.csv").split_inclusive('\n').take(1).collect();
    assert_eq!(imported(csv).await.1.len(), 0);
}

#[tokio::test]
async fn speeds_that_are_no_numbers_are_rejected_by_name_and_the_others_stay() {
    let json = sample("plain.json")
        .replacen("\"avg_ts\": 240.845721", "\"avg_ts\": inf", 1)
        .replacen("\"stddev_ts\": 18.061201", "\"stddev_ts\": -nan", 1);
    let (found, tests) = imported(json).await;
    assert_eq!(tests.len(), 2);
    let reasons = rejected(&found);
    assert!(reasons[0].1.contains("avg_ts is inf"), "{reasons:?}");
    assert!(reasons[1].1.contains("stddev_ts is -nan"), "{reasons:?}");
    assert_eq!(reasons[0].0, 2, "the row begins on the second line");
    let csv = sample("plain.csv").replacen("\"240.845721\"", "\"inf\"", 1);
    let (found, tests) = imported(csv).await;
    assert_eq!((tests.len(), rejected(&found)[0].0), (3, 2));
    let md = sample("plain.md").replacen("272.76 ± 5.02", "nan ± nan", 1);
    let (found, tests) = imported(md).await;
    assert_eq!((tests.len(), rejected(&found)[0].0), (3, 3));
    for (field, value) in [
        ("avg_ns", json!(0)),
        ("samples_ns", json!([1, 0])),
        ("n_prompt", json!(0)),
        ("n_gen", json!(-1)),
    ] {
        let (found, tests) = imported(row(|row| row[field] = value).to_string()).await;
        assert_eq!((tests.len(), found.rejected.len()), (0, 1), "{field}");
    }
}

#[tokio::test]
async fn a_decimal_comma_is_never_dropped() {
    let csv = sample("plain.csv").replace("\"240.845721\"", "\"240,845721\"");
    let tests = tests_of(csv).await;
    assert_eq!(tests[0].reported.unwrap().avg_ts, Some(240.845_721));
    let md = sample("plain.md").replacen("272.76 ± 5.02", "272,76 ± 5,02", 1);
    let reported = tests_of(md).await[0].reported.unwrap();
    assert_eq!(
        (reported.avg_ts, reported.stddev_ts),
        (Some(272.76), Some(5.02))
    );
    let sheet = sample("plain.csv")
        .replace("\",\"", "\";\"")
        .replace("n_prompt,n_gen", "n_prompt;n_gen");
    let sheet: String = sheet
        .lines()
        .enumerate()
        .map(|(at, line)| match at {
            0 => line.replace(',', ";") + "\n",
            _ => line.replace('.', ",") + "\n",
        })
        .collect();
    assert_eq!(
        tests_of(sheet).await[0].reported.unwrap().avg_ts,
        Some(240.845_721)
    );
    let json = sample("plain.json").replacen("240.845721", "240,845721", 1);
    let (found, tests) = imported(json).await;
    assert_eq!(tests.len(), 3);
    assert!(
        rejected(&found)[0].1.contains("decimal comma"),
        "{:?}",
        found.rejected
    );
    let thousands = sample("plain.md").replacen("272.76 ± 5.02", "13,142 ± 5.02", 1);
    let (found, _) = imported(thousands).await;
    assert!(
        rejected(&found)[0].1.contains("comma"),
        "{:?}",
        found.rejected
    );
}

#[tokio::test]
async fn every_encoding_gives_the_same_rows() {
    let text = sample("plain.md");
    let expected: Vec<_> = tests_of(text.clone())
        .await
        .iter()
        .map(|test| test.record.id)
        .collect();
    let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let latin: Vec<u8> = text
        .chars()
        .map(|c| u8::try_from(u32::from(c)).unwrap())
        .collect();
    for file in [
        [b"\xff\xfe".to_vec(), utf16].concat(),
        latin,
        // UTF-8 that was taken for a code page, once and twice.
        text.replace('±', "Â±").into_bytes(),
        text.replace('±', "\u{252c}\u{2592}").into_bytes(),
        text.replace('±', "+/-").into_bytes(),
        text.replace('\n', "\r\n").into_bytes(),
    ] {
        let ids: Vec<_> = tests_of(file)
            .await
            .iter()
            .map(|test| test.record.id)
            .collect();
        assert_eq!(ids, expected);
    }
}

#[tokio::test]
async fn what_is_asked_for_is_kept_as_it_was_given() {
    let tests = tests_of(
        json!([
            row(|row| row["n_gpu_layers"] = json!(99)),
            row(|row| row["n_gpu_layers"] = json!("all")),
            row(|row| row["devices"] = json!("Vulkan0/CPU")),
        ])
        .to_string(),
    )
    .await;
    assert_eq!(tests[0].record.settings.n_gpu_layers, 99);
    assert_eq!(
        tests[0].told.as_ref().unwrap().backends.as_deref(),
        Some("CPU"),
        "what really ran"
    );
    assert!(!tests[1].knows("n_gpu_layers"));
    assert_eq!(tests[1].extra["n_gpu_layers"], json!("all"));
    let again = twospeed_history::llama_bench::Row::of_test(&tests[1]).unwrap();
    let again = again
        .values()
        .iter()
        .map(twospeed_history::llama_bench::Value::plain)
        .collect::<Vec<_>>();
    assert!(again.contains(&"all".to_owned()), "{again:?}");
    assert_eq!(tests[2].record.settings.devices, "Vulkan0/CPU");
}

#[tokio::test]
async fn rows_of_2023_are_read() {
    let old = json!({
        "build_commit": "3469684", "build_number": 1275, "cuda": true, "opencl": false, "metal": false,
        "gpu_blas": true, "blas": true, "cpu_info": "13th Gen Intel(R) Core(TM) i9-13900K",
        "gpu_info": "NVIDIA GeForce RTX 3090 Ti", "model_filename": "models/7B/ggml-model-q4_0.gguf",
        "model_type": "llama 7B mostly Q4_0", "model_size": 3_825_065_984_u64,
        "model_n_params": 6_738_415_616_u64, "n_batch": 512, "n_threads": 16, "f16_kv": true,
        "n_gpu_layers": 99, "main_gpu": 0, "mul_mat_q": true, "tensor_split": "0.00",
        "n_prompt": 512, "n_gen": 0, "test_time": "2023-09-23T12:09:01Z", "avg_ns": 212155977,
        "stddev_ns": 985372, "avg_ts": 2413.341687, "stddev_ts": 11.305837,
        "samples_ns": [213837238, 211635853], "samples_ts": [2394.34, 2419.25]
    });
    let test = &tests_of(old.to_string()).await[0];
    let settings = &test.record.settings;
    assert_eq!(
        (settings.type_k.as_str(), settings.type_v.as_str()),
        ("f16", "f16")
    );
    assert!(test.knows("type_k") && !test.knows("flash_attn") && !test.knows("n_ubatch"));
    assert_eq!(test.record.spec.n_depth, 0);
    assert_eq!(test.extra["mul_mat_q"], json!(true));
    assert_eq!(
        test.told.as_ref().unwrap().backends.as_deref(),
        Some("CUDA,GPU BLAS,BLAS")
    );
    assert_eq!(test.record.model.quantization.as_deref(), Some("Q4_0"));
}

#[tokio::test]
async fn settings_that_were_renamed_are_read_by_both_names() {
    let read = async |change: fn(&mut Value)| tests_of(row(change).to_string()).await.remove(0);
    let old = read(|row| {
        let fields = row.as_object_mut().unwrap();
        fields.remove("load_mode");
        fields.insert("use_mmap".into(), json!(true));
        fields.insert("flash_attn".into(), json!(false));
        fields.remove("n_depth");
    })
    .await;
    assert_eq!(old.record.settings.load_mode, "mmap");
    assert_eq!(old.record.settings.flash_attn, FlashAttention::Off);
    let direct = read(|row| {
        let fields = row.as_object_mut().unwrap();
        fields.remove("load_mode");
        fields.insert("use_mmap".into(), json!(1));
        fields.insert("use_direct_io".into(), json!(1));
    })
    .await;
    assert_eq!(direct.record.settings.load_mode, "dio");
}

#[tokio::test]
async fn a_spread_is_computed_from_samples_and_unknown_of_one() {
    // A file whose stddev_ns wrapped. By hand: deviations -150, 0, 150 million, s = 150 million.
    let wrapped = row(|row| {
        row["samples_ns"] = json!([3_850_000_000_u64, 4_000_000_000_u64, 4_150_000_000_u64]);
        row["stddev_ns"] = json!(3_722_529_745_u64);
        row["stddev_ts"] = json!(999.0);
    });
    let test = &tests_of(wrapped.to_string()).await[0];
    assert!(
        test.reported.is_none(),
        "nothing of what contradicts the samples is kept"
    );
    let speed = test.speed().unwrap();
    // 32e9 / ns: 8.311688, 8, 7.710843; their mean 8.007510 and s 0.300494.
    assert!((speed.mean - 8.007_510).abs() < 1e-5, "{}", speed.mean);
    assert!((speed.standard_deviation.unwrap() - 0.300_494).abs() < 1e-5);

    let one = row(|row| {
        row["samples_ns"] = json!([112_446_087]);
        row["stddev_ts"] = json!(0.0);
    });
    assert_eq!(
        tests_of(one.to_string()).await[0]
            .speed()
            .unwrap()
            .standard_deviation,
        None
    );
    let md = sample("plain.md").replacen("272.76 ± 5.02", "272.76 ± 0.00", 1);
    assert_eq!(
        tests_of(md).await[0].speed().unwrap().standard_deviation,
        None
    );
}

#[tokio::test]
async fn a_line_that_breaks_off_is_named_and_the_lines_before_are_kept() {
    let file = sample("plain.jsonl");
    let (found, tests) = imported(&file[..file.len() - 60]).await;
    assert_eq!(tests.len(), 3);
    let parts = rejected(&found);
    assert_eq!(parts[0].0, 4);
    assert!(parts[0].1.contains("breaks off"), "{parts:?}");
    for ending in ["json", "csv", "sql"] {
        let file = sample(&format!("plain.{ending}"));
        let (found, tests) = imported(&file[..file.len() - 60]).await;
        assert_eq!((tests.len(), found.rejected.len()), (3, 1), "{ending}");
    }
}

#[tokio::test]
async fn what_no_machine_can_do_is_flagged_and_left_out_until_it_is_allowed() {
    let desk = Desk::new().await;
    // 8 tokens of a 97 MB model in 8 microseconds would read 97 TB/s.
    let rows = json!([
        row(|row| {
            row["n_prompt"] = json!(0);
            row["n_gen"] = json!(8);
            row["samples_ns"] = json!([8000]);
        }),
        row(|_| ()),
    ]);
    let imported = desk.import(rows.to_string()).await;
    assert_eq!(imported.flagged.len(), 1);
    assert!(
        imported.flagged[0].reason.contains("97 TB/s"),
        "{:?}",
        imported.flagged
    );
    let latest = async || {
        let runs = desk.history.latest(&LatestFilter::default()).await.unwrap();
        runs.iter().map(|run| run.tests.len()).sum::<usize>()
    };
    assert_eq!(latest().await, 1);
    let overview = desk
        .history
        .runs(&twospeed_history::RunFilter::default())
        .await
        .unwrap();
    assert_eq!(overview[0].suspect, 1);
    let test = imported.flagged[0].test;
    assert_eq!(
        desk.history
            .allow(&[test], Some(records::at(1)))
            .await
            .unwrap(),
        1
    );
    assert_eq!(latest().await, 2);
    desk.history.allow(&[test], None).await.unwrap();
    assert_eq!(latest().await, 1);
}

#[tokio::test]
async fn a_mean_that_contradicts_its_own_time_is_flagged() {
    let csv = sample("plain.csv").replacen("\"240.845721\"", "\"24084.5721\"", 1);
    let (found, _) = imported(csv).await;
    assert_eq!(found.flagged.len(), 1);
    assert!(
        found.flagged[0].reason.contains("contradicts"),
        "{:?}",
        found.flagged
    );
}

#[tokio::test]
async fn what_is_no_result_is_said() {
    let desk = Desk::new().await;
    for file in [
        "",
        "hello, world",
        "{}",
        "[1, 2]",
        "a,b\n1,2\n",
        "| a | b |\n| - | - |\n| 1 | 2 |\n",
        "\u{0}\u{1}",
    ] {
        let error = desk
            .history
            .import(file.into(), records::at(0))
            .await
            .unwrap_err();
        assert!(
            matches!(error, HistoryError::NothingFound),
            "{file}: {error}"
        );
    }
}
