//! Headers of models that are not here, from a server of the test's own.

#![allow(clippy::unwrap_used, clippy::panic)]

mod range_server;

use std::time::{Duration, Instant};

use range_server::{Manner, RangeServer};
use twospeed_gguf::{Data, Field, TensorType, Writer};
use twospeed_library::ModelHeader;
use twospeed_library::download::{GoOn, Hub, Place, RemoteError, remote_header};

const GB: u64 = 1_000_000_000;

/// A model of 1 GB whose header has 3 MB: a tokenizer of 150,000 words.
fn large() -> Writer {
    let mut writer = Writer::new();
    writer
        .set("general.architecture", "llama")
        .set("general.name", "Large")
        .set("llama.block_count", 1u32)
        .set(
            "tokenizer.ggml.tokens",
            Field::texts((0..150_000).map(|word| format!("word {word:07}"))),
        );
    let rows = GB / 34 / 128 / 2;
    for name in ["token_embd.weight", "output.weight"] {
        writer
            .tensor(name, TensorType::Q8_0, &[4096, rows])
            .unwrap();
    }
    writer
}

fn server(manner: Manner) -> RangeServer {
    let writer = large();
    RangeServer::start(writer.header(), writer.file_bytes(), manner)
}

fn ask(url: &str) -> Result<ModelHeader, RemoteError> {
    let hub = Hub::new("https://huggingface.co", Some("secret".into())).unwrap();
    let place = Place::named(url)?.unwrap();
    remote_header(&hub, &place, Duration::from_millis(1), &|| GoOn::Yes)
}

fn refused(manner: Manner) -> String {
    let server = server(manner);
    let sentence = ask(&server.file("large.gguf")).unwrap_err().to_string();
    assert!(
        sentence.ends_with('.') && !sentence.contains('\n'),
        "{sentence}"
    );
    sentence
}

#[test]
fn of_a_gigabyte_less_than_a_hundredth_is_read() {
    let server = server(Manner::Parts);
    let header = ask(&server.file("large.gguf")).unwrap();
    assert_eq!(header.model.name, "Large");
    assert_eq!(header.model.data, Data::Complete);
    assert!(header.model.file_bytes > 990_000_000);
    assert_eq!(header.bytes_read, server.sent());
    assert!(server.sent() < GB / 100, "{}", server.sent());
    let ranges = server.headers("range");
    assert_eq!(ranges[..2], ["bytes=0-524287", "bytes=524288-1048575"]);
    assert!(
        server.headers("authorization").is_empty(),
        "no token for others"
    );
}

#[test]
fn a_server_that_gives_no_parts_is_listened_to_as_far_as_the_header_goes() {
    for manner in [Manner::Whole, Manner::Endless] {
        let server = server(manner);
        let header = ask(&server.file("large.gguf")).unwrap();
        assert_eq!(header.model.name, "Large");
        assert_eq!(header.model.data, Data::Complete);
        assert!(header.bytes_read < GB / 100, "{}", header.bytes_read);
        // What the system buffers on the way comes on top, and then nobody listens.
        std::thread::sleep(Duration::from_millis(300));
        assert!(server.sent() < GB / 20, "{}", server.sent());
        assert_eq!(server.paths().len(), 1, "asked once");
    }
}

#[test]
fn a_redirection_is_followed_and_a_busy_server_asked_again() {
    let there = server(Manner::StatusOnce(503));
    let here = server(Manner::SendOnTo(there.file("elsewhere/x.gguf")));
    let header = ask(&here.file("large.gguf")).unwrap();
    assert_eq!(header.model.name, "Large");
    assert!(there.paths().iter().all(|path| path == "/elsewhere/x.gguf"));
}

#[test]
fn parts_of_a_set_are_read_as_one_model() {
    let set = |file: &str| {
        let mut writer = Writer::new();
        if file.contains("-00001-") {
            writer
                .set("general.architecture", "llama")
                .set("general.name", "Set")
                .set("llama.block_count", 2u32);
        }
        writer.set("split.count", 2u16);
        writer.set("split.no", u16::from(file.contains("-00002-")));
        let layer = if file.contains("-00001-") { 0 } else { 1 };
        writer
            .tensor(
                &format!("blk.{layer}.attn_q.weight"),
                TensorType::F16,
                &[64, 64],
            )
            .unwrap();
        writer
    };
    // One server for each part: the second is where the first sends on.
    let names = ["s-00001-of-00002.gguf", "s-00002-of-00002.gguf"];
    let [first, second] = names.map(set);
    let second = RangeServer::start(second.header(), second.file_bytes(), Manner::Parts);
    let first = RangeServer::of_two(
        (first.header(), first.file_bytes()),
        ("00002-of", second.file(names[1])),
    );
    let header = ask(&first.file(names[1])).unwrap();
    assert_eq!(header.model.name, "Set");
    assert_eq!(header.model.tensors.len(), 2);
    assert_eq!(header.model.split, None, "as one file");
}

#[test]
fn whatever_comes_instead_of_a_model_is_one_sentence() {
    assert!(refused(Manner::Status(404)).contains("(404)"));
    assert!(refused(Manner::Status(401)).contains("HF_TOKEN"));
    assert!(refused(Manner::Status(416)).contains("no whole header"));
    assert!(refused(Manner::Status(500)).contains("Try again later"));
    assert!(refused(Manner::Page).contains("a web page"));
    let circle = RangeServer::in_a_circle();
    let sentence = ask(&circle.file("a.gguf")).unwrap_err().to_string();
    assert!(sentence.contains("circle"), "{sentence}");

    let text = RangeServer::start(
        b"Not a model at all, but text.".to_vec(),
        5000,
        Manner::Parts,
    );
    let sentence = ask(&text.file("a.gguf")).unwrap_err().to_string();
    assert!(sentence.contains("a.gguf is "), "{sentence}");
    assert!(sentence.contains("not a GGUF model"), "{sentence}");

    let sentence = ask("http://127.0.0.1:1/a.gguf").unwrap_err().to_string();
    assert!(sentence.contains("cannot be reached"), "{sentence}");
}

#[test]
fn a_file_that_ends_in_its_header_and_one_that_is_cut_short_are_refused() {
    let writer = large();
    let short = RangeServer::start(writer.header(), 700_000, Manner::Parts);
    assert!(ask(&short.file("a.gguf")).is_err());
    let cut = RangeServer::start(writer.header(), GB / 10 * 6, Manner::Parts);
    let sentence = ask(&cut.file("a.gguf")).unwrap_err().to_string();
    assert!(sentence.contains("cut short"), "{sentence}");
}

#[test]
fn a_header_without_end_is_given_up_early() {
    // One key whose text goes on for as long as anybody listens.
    let mut start = b"GGUF\x03\0\0\0".to_vec();
    start.extend_from_slice(&0u64.to_le_bytes());
    start.extend_from_slice(&1u64.to_le_bytes());
    start.extend_from_slice(&1u64.to_le_bytes());
    start.extend_from_slice(b"a\x08\0\0\0");
    start.extend_from_slice(&(1u64 << 40).to_le_bytes());
    for (total, manner) in [(1 << 45, Manner::Parts), (1 << 45, Manner::Endless)] {
        let server = RangeServer::start(start.clone(), total, manner);
        let sentence = ask(&server.file("a.gguf")).unwrap_err().to_string();
        assert!(!sentence.contains('\n'), "{sentence}");
        assert!(server.sent() < 100 << 20, "{}", server.sent());
    }
}

#[test]
fn waiting_for_a_silent_server_can_be_stopped() {
    let server = server(Manner::Silence(Duration::from_secs(20)));
    let hub = Hub::new("https://huggingface.co", None).unwrap();
    let place = Place::named(&server.file("a.gguf")).unwrap().unwrap();
    let begun = Instant::now();
    let go_on = || match begun.elapsed() < Duration::from_millis(300) {
        true => GoOn::Yes,
        false => GoOn::No,
    };
    let stopped = remote_header(&hub, &place, Duration::from_millis(1), &go_on).unwrap_err();
    assert_eq!(stopped.code(), "cancelled");
    assert!(begun.elapsed() < Duration::from_secs(5));
}
