use jiff::Timestamp;
use twospeed_engine::settings::ModelPath;
use twospeed_history::{Origin, ReadReading, RunStatus};
use twospeed_measure::{Recorder, TestStatus};

use crate::{open, records, usual_run};

#[tokio::test]
async fn everything_that_was_recorded_is_read_back_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let (run, tests) = usual_run(&history).await;

    let whole = history.run(run.id).await.unwrap().unwrap();
    assert_eq!(whole.run.id, run.id);
    assert_eq!(whole.run.origin, Origin::Measured);
    assert_eq!(whole.run.started_at, run.started_at);
    assert_eq!(whole.run.ended_at, Some(records::at(600)));
    assert_eq!(whole.run.status, RunStatus::Complete);
    assert_eq!(whole.run.machine, run.machine);
    assert_eq!(whole.run.app_version, run.app_version);
    assert_eq!(whole.run.preset, run.preset);
    assert_eq!(whole.plan, run.plan);
    assert_eq!(whole.tests.len(), 2);
    for (stored, test) in whole.tests.iter().zip(&tests) {
        assert_eq!(&stored.record, test);
        assert_eq!(stored.end, Some(records::end(test, TestStatus::Done)));
        let samples: Vec<_> = (0..2).map(|index| records::sample(test, index)).collect();
        assert_eq!(stored.samples, samples);
    }
}

#[tokio::test]
async fn every_way_a_test_can_end_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let run = records::run();
    history.run_started(&run).await.unwrap();
    let ways = [
        TestStatus::Done,
        TestStatus::Failed {
            code: "signal".into(),
            message: "The engine died of signal 4 (illegal instruction).".into(),
            log: vec!["line 1".into(), "line \"2\"\n".into()],
        },
        TestStatus::Cancelled,
        TestStatus::Interrupted,
        TestStatus::Skipped {
            reason: "The run ended before.".into(),
        },
    ];
    let mut ends = Vec::new();
    for (position, status) in (0..).zip(ways) {
        let model = records::model("aa", "Smol");
        let test = records::test(run.id, position, model, records::spec(512, 0));
        history.test_started(&test).await.unwrap();
        // What a test that never met a worker knows: next to nothing.
        let end = records::bare_end(&test, status);
        history.test_ended(&end).await.unwrap();
        ends.push(Some(end));
    }
    let whole = history.run(run.id).await.unwrap().unwrap();
    let stored: Vec<_> = whole.tests.into_iter().map(|test| test.end).collect();
    assert_eq!(stored, ends);
    assert_eq!(whole.run.status, RunStatus::Running);
}

#[tokio::test]
async fn a_sample_is_there_at_once_for_every_other_reader() {
    let folder = tempfile::tempdir().unwrap();
    let (measuring, watching) = (open(folder.path()).await, open(folder.path()).await);
    let run = records::run();
    let model = records::model("aa", "Smol");
    let test = records::test(run.id, 0, model, records::spec(512, 0));
    measuring.run_started(&run).await.unwrap();
    measuring.test_started(&test).await.unwrap();
    for index in 0..3 {
        measuring
            .sample(&records::sample(&test, index))
            .await
            .unwrap();
        let whole = watching.run(run.id).await.unwrap().unwrap();
        assert_eq!(whole.tests[0].samples.len() as u32, index + 1);
        assert_eq!(whole.tests[0].end, None, "it still runs");
    }
}

#[tokio::test]
async fn a_sample_that_took_no_time_is_refused_with_a_sentence_and_the_rest_stands() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let run = records::run();
    let model = records::model("aa", "Smol");
    let test = records::test(run.id, 0, model, records::spec(512, 0));
    history.run_started(&run).await.unwrap();
    history.test_started(&test).await.unwrap();
    history.sample(&records::sample(&test, 0)).await.unwrap();

    let mut impossible = records::sample(&test, 1);
    impossible.sample.ns = 0;
    let refused = history.sample(&impossible).await.unwrap_err();
    assert!(refused.message.contains("cannot be true"), "{refused}");
    impossible.sample.ns = u64::MAX;
    history.sample(&impossible).await.unwrap_err();

    history.sample(&records::sample(&test, 1)).await.unwrap();
    let whole = history.run(run.id).await.unwrap().unwrap();
    assert_eq!(whole.tests[0].samples.len(), 2);
}

#[tokio::test]
async fn a_sample_or_an_end_without_its_test_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let run = records::run();
    let model = records::model("aa", "Smol");
    let stray = records::test(run.id, 0, model, records::spec(512, 0));
    history
        .sample(&records::sample(&stray, 0))
        .await
        .unwrap_err();
    history.test_started(&stray).await.unwrap_err();
    let end = records::end(&stray, TestStatus::Done);
    let refused = history.test_ended(&end).await.unwrap_err();
    assert!(refused.message.contains(&stray.id.to_string()), "{refused}");
    let refused = history.run_ended(run.id, Timestamp::UNIX_EPOCH, true).await;
    refused.unwrap_err();
}

#[tokio::test]
async fn a_number_that_json_has_no_form_for_is_refused_and_never_blocks_reading() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let run = records::run();
    let model = records::model("aa", "Smol");
    let test = records::test(run.id, 0, model, records::spec(512, 0));
    history.run_started(&run).await.unwrap();
    history.test_started(&test).await.unwrap();
    let mut end = records::end(&test, TestStatus::Done);
    end.warnings = vec![twospeed_measure::warning::Warning::SlowFirstSample { by: f64::NAN }];
    history.test_ended(&end).await.unwrap_err();
    assert!(history.run(run.id).await.unwrap().is_some());
}

#[tokio::test]
async fn a_renamed_file_is_the_same_model_and_another_content_of_that_name_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let run = records::run();
    history.run_started(&run).await.unwrap();
    let mut renamed = records::model("aa", "Smol");
    renamed.path = ModelPath("/elsewhere/new name.gguf".into());
    let models = [
        records::model("aa", "Smol"),
        renamed,
        records::model("bb", "Smol"),
    ];
    for (position, model) in (0..).zip(models) {
        let test = records::test(run.id, position, model, records::spec(512, 0));
        history.test_started(&test).await.unwrap();
    }
    let overview = &history.runs(&Default::default()).await.unwrap()[0];
    let fingerprints: Vec<_> = (overview.models.iter())
        .map(|model| model.fingerprint.as_str())
        .collect();
    assert_eq!(fingerprints, ["aa", "bb"]);
    let whole = history.run(run.id).await.unwrap().unwrap();
    assert_ne!(
        whole.tests[0].record.model.path, whole.tests[1].record.model.path,
        "where it lay belongs to the test"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn a_path_that_is_no_unicode_is_read_back_byte_for_byte() {
    use std::os::unix::ffi::OsStringExt;
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let run = records::run();
    let mut model = records::model("aa", "Smol");
    let bytes = b"/models/\xff\xfe.gguf".to_vec();
    model.path = ModelPath(std::ffi::OsString::from_vec(bytes).into());
    let test = records::test(run.id, 0, model, records::spec(512, 0));
    history.run_started(&run).await.unwrap();
    history.test_started(&test).await.unwrap();
    let whole = history.run(run.id).await.unwrap().unwrap();
    assert_eq!(whole.tests[0].record, test);
}

#[tokio::test]
async fn a_variant_set_aside_is_remembered_for_this_machine_and_build_alone() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let (machine, engine) = (records::machine(), records::engine());
    for reason in ["Illegal instruction.", "Illegal instruction, again."] {
        history
            .set_variant_aside(&machine, &engine, "sapphirerapids", reason)
            .await
            .unwrap();
    }
    let again = open(folder.path()).await;
    let aside = again.variants_set_aside(&machine, &engine).await.unwrap();
    assert_eq!(aside, ["sapphirerapids"]);

    let mut other_machine = machine.clone();
    other_machine.id = "other".into();
    let mut other_build = engine.clone();
    other_build.build_number += 1;
    for (machine, engine) in [(&other_machine, &engine), (&machine, &other_build)] {
        let aside = again.variants_set_aside(machine, engine).await.unwrap();
        assert!(aside.is_empty(), "{aside:?}");
    }
}

#[tokio::test]
async fn the_newest_reading_of_each_buffer_size_is_given_for_its_machine() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path()).await;
    let reading = |buffer_bytes, bytes_per_second, seconds| ReadReading {
        buffer_bytes,
        bytes_per_second,
        threads: 2,
        at: records::at(seconds),
    };
    let old = [
        reading(8_000_000_000, 20_500_000_000, 0),
        reading(100, 50_000_000_000, 0),
    ];
    let new = [reading(8_000_000_000, 19_500_000_000, 60)];
    for readings in [&new[..], &old[..]] {
        let machine = records::machine();
        history.keep_read_speeds(&machine, readings).await.unwrap();
    }
    let machine = records::machine().id;
    let kept = history.read_speeds(&machine).await.unwrap();
    assert_eq!(kept, [old[1], new[0]]);
    assert!(history.read_speeds("other").await.unwrap().is_empty());
}
