//! Models fetched by the command line from a server of the test's own.
// Everything here is a test: helpers may end it as tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../../src-tauri/crates/library/tests/server/mod.rs"]
#[allow(dead_code)]
mod server;

use std::fs;

use server::{Answer, Server};
use twospeed_tests::worker::tiny;
use twospeed_tests::{Desk, Ran, json};

const REPO: &str = "owner/tiny-GGUF";

fn run(desk: &Desk, server: &Server, arguments: &[&str], token: Option<&str>) -> Ran {
    let mut command = desk.command([&["download"], arguments].concat());
    command
        .env("HF_ENDPOINT", server.address())
        .env_remove("HF_TOKEN");
    if let Some(token) = token {
        command.env("HF_TOKEN", token);
    }
    Ran::from(command.output().unwrap())
}

/// A real model, small.
fn content(desk: &Desk) -> Vec<u8> {
    let path = tiny(desk.path(), "llama-dense-Q8_0", |_| {});
    let content = fs::read(&path).unwrap();
    fs::remove_file(path).unwrap();
    content
}

#[test]
fn a_model_lies_among_the_models_of_the_data_folder_and_is_known_there() {
    let desk = Desk::new();
    let content = content(&desk);
    let server = Server::with(REPO, &[("tiny-Q8_0.gguf", &content)]);
    let ran = run(&desk, &server, &[REPO, "--json"], None);
    let said = json(&ran.ok());
    let place = desk.path().join("models").join("tiny-Q8_0.gguf");
    assert_eq!(said["path"], place.to_str().unwrap());
    assert_eq!(said["verified"], true);
    let found = json(
        &desk
            .run(["inspect", place.to_str().unwrap(), "--json"])
            .ok(),
    );
    assert_eq!(found["data"], "complete");

    let again = run(&desk, &server, &[REPO], None);
    assert!(again.err.contains("there already"), "{}", again.err);
    assert_eq!(again.ok().trim(), place.to_str().unwrap());
}

#[test]
fn of_several_models_one_has_to_be_named() {
    let desk = Desk::new();
    let content = content(&desk);
    let server = Server::with(
        REPO,
        &[("t-Q4_K_M.gguf", &content), ("t-Q8_0.gguf", &content)],
    );
    let sentence = run(&desk, &server, &[REPO], None).fails(2);
    assert!(
        sentence.contains("2 models: t-Q4_K_M.gguf (1.3"),
        "{sentence}"
    );
    let other = desk.path().join("elsewhere");
    let one = format!("{REPO}:q8_0");
    run(
        &desk,
        &server,
        &[&one, "--to", other.to_str().unwrap()],
        None,
    )
    .ok();
    assert_eq!(fs::read(other.join("t-Q8_0.gguf")).unwrap(), content);
}

#[test]
fn whatever_goes_wrong_is_one_sentence() {
    let desk = Desk::new();
    let content = content(&desk);
    let server = Server::with(REPO, &[("t.gguf", &content)]);
    for hostile in ["owner/x:../t.gguf", "owner/x:/etc/t.gguf", "../x", "owner"] {
        run(&desk, &server, &[hostile], None).fails(2);
    }
    assert!(server.requests().is_empty(), "nobody was asked");
    let sentence = run(&desk, &server, &["owner/other"], None).fails(1);
    assert!(sentence.contains("(404)"), "{sentence}");
    server.answer_files_with([Answer::Status(401)]);
    let sentence = run(&desk, &server, &[REPO], None).fails(1);
    assert!(sentence.contains("HF_TOKEN"), "{sentence}");
    server.answer_files_with([Answer::Spoilt]);
    let sentence = run(&desk, &server, &[REPO], None).fails(1);
    assert!(sentence.contains("sha256"), "{sentence}");
    let left: Vec<_> = fs::read_dir(desk.path().join("models")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");

    let mut command = desk.command(["download", REPO]);
    command
        .env("HF_ENDPOINT", "http://example.org")
        .env("HF_TOKEN", "x");
    let sentence = Ran::from(command.output().unwrap()).fails(2);
    assert!(sentence.contains("unencrypted"), "{sentence}");
}

#[test]
fn a_cut_is_mended_and_the_token_stays_with_its_server() {
    let desk = Desk::new();
    let content = content(&desk);
    let store = Server::with(REPO, &[("t.gguf", &content)]);
    let server = Server::with(REPO, &[("t.gguf", &content)]);
    let there = format!("{}/{REPO}/resolve/main/t.gguf", store.address());
    server.answer_files_with([
        Answer::CutAfter(1000),
        Answer::SendOnTo(there.clone()),
        Answer::SendOnTo(there),
    ]);
    store.answer_files_with([Answer::CutAfter(5000)]);
    run(&desk, &server, &[REPO], Some("hf_secret")).ok();
    let place = desk.path().join("models").join("t.gguf");
    assert_eq!(fs::read(place).unwrap(), content);
    let ranges: Vec<_> = store
        .requests()
        .iter()
        .filter_map(|asked| asked.header("range"))
        .collect();
    assert_eq!(ranges, ["bytes=1000-", "bytes=6000-"]);
    assert!(
        store
            .requests()
            .iter()
            .all(|asked| asked.header("authorization").is_none())
    );
    assert!(
        server
            .requests()
            .iter()
            .all(|asked| asked.header("authorization").is_some())
    );
}
