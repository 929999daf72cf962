use twospeed_engine::How;
use twospeed_engine::fake::{FakeEngine, Script};
use twospeed_engine::protocol::Buffer;
use twospeed_estimate::KvType;

use super::*;

const GIB: u64 = 1 << 30;

fn header() -> Model {
    let file = "../../../tests/data/gguf/archs/llama-dense-Q8_0.header.gguf";
    twospeed_gguf::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap()
}

fn at(context: u64) -> ForeseeContext {
    let mut question = Question::default();
    question.context.context = context;
    foresee_context(&question)
}

/// The files that an engine was asked about, as they were then: whether they were there, and how
/// long.
fn asked_about(requests: &[Request]) -> Vec<PathBuf> {
    requests
        .iter()
        .map(|request| match request {
            Request::Foresee(asked) => asked.model.0.clone(),
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn a_question_is_asked_in_the_engines_words() {
    let question = Question {
        outputs: 1,
        gpu_layers: 7,
        context: ContextSettings {
            context: 32_768,
            sequences: 4,
            split: true,
            type_k: KvType::Q8_0,
            flash_attention: FlashAttention::On,
            ..ContextSettings::default()
        },
        ..Question::default()
    };
    let asked = foresee_context(&question);
    assert_eq!(
        (asked.n_ctx, asked.n_seq, asked.split_kv),
        (32_768, 4, true)
    );
    let settings = &asked.settings;
    assert_eq!(
        (settings.type_k.as_str(), settings.type_v.as_str()),
        ("q8_0", "f16")
    );
    assert_eq!((settings.n_outputs, settings.n_gpu_layers), (1, 7));
    assert_eq!(settings.flash_attn, twospeed_engine::FlashAttention::On);
    assert_eq!((settings.n_batch, settings.n_ubatch), (2048, 512));
}

#[tokio::test]
async fn a_header_is_asked_about_at_its_full_length_and_nothing_stays_behind() {
    let engine = FakeEngine::new();
    let mut foreseer = Foreseer::new(Start::default());
    let model = header();
    let answers = foreseer.ask(&engine, &model, &[at(512), at(1024)]).await;
    // The fake's model: 23,040 bytes of K and V a token.
    let kv = |answer: &Result<Allocated, Unforeseen>| answer.as_ref().unwrap().sum().kv.0;
    assert_eq!(kv(&answers[0]), 512 * 23_040);
    assert_eq!(kv(&answers[1]), 1024 * 23_040);
    let files = asked_about(&engine.requests());
    assert_eq!(files.len(), 1, "both in one request");
    assert_eq!(
        std::fs::metadata(&files[0]).unwrap().len(),
        model.bytes_expected
    );
    assert_ne!(files[0], model.path);

    foreseer.close().await;
    assert!(!files[0].exists());
    assert!(!files[0].parent().unwrap().exists());
}

#[tokio::test]
async fn a_slider_asks_one_worker_and_each_place_of_it_once() {
    let engine = FakeEngine::new();
    let mut foreseer = Foreseer::new(Start::default());
    let model = header();
    for context in [512, 1024, 512, 2048, 1024] {
        let answers = foreseer.ask(&engine, &model, &[at(context)]).await;
        assert_eq!(answers[0].as_ref().unwrap().sum().kv.0, context * 23_040);
    }
    assert_eq!(engine.starts().len(), 1);
    assert_eq!(engine.requests().len(), 3, "512, 1,024 and 2,048 once each");
    assert!(foreseer.remembered(&model, &at(1024)).is_some());
    assert!(foreseer.remembered(&model, &at(4096)).is_none());
    let files = asked_about(&engine.requests());
    assert!(
        files.windows(2).all(|two| two[0] == two[1]),
        "one copy for all"
    );
}

#[tokio::test]
async fn a_worker_that_dies_over_a_question_is_not_asked_it_again() {
    let engine = FakeEngine::new().dies_on(0, How::OutOfMemory);
    let mut foreseer = Foreseer::new(Start::default());
    let model = header();
    for _ in 0..2 {
        let answers = foreseer.ask(&engine, &model, &[at(512)]).await;
        let Err(Unforeseen::NotAsked(why)) = &answers[0] else {
            panic!("{answers:?}");
        };
        assert!(why.starts_with("Memory ran out"), "{why}");
    }
    assert_eq!(engine.starts().len(), 1);
    // Another question gets a worker of its own.
    let other = foreseer.ask(&engine, &model, &[at(1024)]).await;
    assert!(other[0].is_ok());
    assert_eq!(engine.starts().len(), 2);
}

#[tokio::test]
async fn what_the_engine_refuses_is_told_in_its_words() {
    let engine = FakeEngine::new().answers(|asked| match asked.request {
        Request::Foresee(_) => Some(Script::new().say(Event::Foreseen {
            contexts: vec![Foreseen::Refused {
                message: "The engine refuses a.gguf: unknown model architecture: 'llama9'.".into(),
            }],
        })),
        _ => None,
    });
    let answers = foresee(&engine, &header(), &[at(512)]).await;
    let Err(refused @ Unforeseen::Refused(_)) = &answers[0] else {
        panic!("{answers:?}");
    };
    assert!(refused.to_string().contains("llama9"));
}

#[tokio::test]
async fn an_engine_that_is_not_there_is_asked_again_another_time() {
    let nowhere = twospeed_engine::process::WorkerProcess::at("/nowhere/twospeed");
    let mut foreseer = Foreseer::new(Start::default());
    let model = header();
    let answers = foreseer.ask(&nowhere, &model, &[at(512)]).await;
    assert!(
        matches!(&answers[0], Err(Unforeseen::NotAsked(_))),
        "{answers:?}"
    );
    assert!(foreseer.remembered(&model, &at(512)).is_none());
    let answers = foreseer.ask(&FakeEngine::new(), &model, &[at(512)]).await;
    assert!(answers[0].is_ok());
}

#[tokio::test]
async fn while_somebody_measures_nobody_is_asked() {
    use jiff::Timestamp;
    use twospeed_measure::Lease;
    let folder = tempfile::tempdir().unwrap();
    let lease = folder.path().join("lease");
    let held = Lease::acquire(&lease, "bench", Timestamp::now, |_| {})
        .await
        .unwrap();
    let engine = FakeEngine::new();
    let mut foreseer = Foreseer::new(Start::default()).yielding_to(lease);
    let model = header();
    let answers = foreseer.ask(&engine, &model, &[at(512)]).await;
    let Err(why) = &answers[0] else {
        panic!("{answers:?}");
    };
    assert!(why.to_string().contains("so as not to disturb it"), "{why}");
    assert_eq!(engine.starts().len(), 0);
    drop(held);
    assert!(foreseer.ask(&engine, &model, &[at(512)]).await[0].is_ok());
}

fn device(name: &str, kind: DeviceKind, free: u64) -> Device {
    Device {
        name: name.into(),
        description: name.into(),
        kind,
        memory_total: Some(free),
        memory_free: Some(free),
    }
}

fn buffer(device: &str, holds: BufferUse, bytes: u64) -> Buffer {
    Buffer {
        device: device.into(),
        holds,
        bytes,
    }
}

/// Half of a model on a graphics processor of this kind, which has 8 GiB free.
fn offloaded(kind: DeviceKind) -> Allocated {
    Allocated {
        placement: Placement {
            buffers: vec![
                buffer("CPU", BufferUse::Model, 2 * GIB),
                buffer("CPU_REPACK", BufferUse::Model, GIB),
                buffer("Vulkan0", BufferUse::Model, 4 * GIB),
                buffer("CPU", BufferUse::Kv, GIB),
                buffer("Vulkan0", BufferUse::Kv, GIB),
                buffer("Vulkan0", BufferUse::Compute, GIB),
                buffer("Vulkan_Host", BufferUse::Output, GIB),
            ],
            ..Placement::default()
        },
        devices: vec![
            device("Vulkan0", kind, 8 * GIB),
            device("CPU", DeviceKind::Cpu, 16 * GIB),
        ],
    }
}

#[test]
fn each_device_has_to_hold_its_own() {
    let of = offloaded(DeviceKind::Gpu);
    let shares = of.by_device();
    let names: Vec<_> = shares.iter().map(|share| share.device.as_str()).collect();
    assert_eq!(names, ["CPU", "Vulkan0"]);
    assert_eq!(
        shares[0].holds.total(),
        Bytes(5 * GIB),
        "pinned memory is the machine's"
    );
    assert_eq!(shares[1].holds.total(), Bytes(6 * GIB));
    assert_eq!(of.sum().total(), Bytes(11 * GIB));
    assert_eq!(of.available(Some(Bytes(16 * GIB))), Some(Bytes(24 * GIB)));
    assert_eq!(of.fits(Some(Bytes(5 * GIB))), Some(true));
    assert_eq!(of.fits(Some(Bytes(5 * GIB - 1))), Some(false));
    assert_eq!(of.fits(None), None, "the machine's memory is not known");
    let mut full = of.clone();
    full.devices[0].memory_free = Some(GIB);
    assert_eq!(
        full.fits(Some(Bytes(64 * GIB))),
        Some(false),
        "room elsewhere is no help"
    );
    full.devices[0].memory_free = None;
    assert_eq!(full.fits(Some(Bytes(64 * GIB))), None);
}

#[test]
fn memory_that_a_graphics_processor_shares_is_counted_once() {
    for kind in [DeviceKind::IntegratedGpu, DeviceKind::SoftwareGpu] {
        let of = offloaded(kind);
        assert_eq!(of.by_device().len(), 1, "{kind:?}");
        assert_eq!(of.available(Some(Bytes(16 * GIB))), Some(Bytes(16 * GIB)));
        assert_eq!(of.fits(Some(Bytes(11 * GIB))), Some(true));
        assert_eq!(of.fits(Some(Bytes(11 * GIB - 1))), Some(false));
    }
}

#[test]
fn mapped_weights_may_be_given_back_and_copies_may_not() {
    let of = offloaded(DeviceKind::Gpu);
    // The copy, the cache and the output; with the 2 GiB of weights where they are read into memory.
    assert_eq!(of.resident(true), Bytes(3 * GIB));
    assert_eq!(of.resident(false), Bytes(5 * GIB));
}
