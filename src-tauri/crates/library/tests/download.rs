//! Downloads against a small server of the test's own, with everything that goes wrong on the way.

#![allow(clippy::unwrap_used, clippy::panic)]

mod server;

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::time::Duration;

use server::{Answer, Server, gguf};
use twospeed_library::download::{Doing, DownloadError, GoOn, Hub, Request, download};

const REPO: &str = "owner/model-GGUF";

fn request(server: &Server, folder: &Path, file: Option<&str>, token: Option<&str>) -> Request {
    let wanted = match file {
        Some(file) => format!("{REPO}:{file}"),
        None => REPO.to_owned(),
    };
    Request {
        hub: Hub::new(&server.address(), token.map(str::to_owned)).unwrap(),
        wanted: wanted.parse().unwrap(),
        folder: folder.to_owned(),
        overwrite: false,
        pause: Duration::from_millis(1),
    }
}

fn fetch(
    server: &Server,
    folder: &Path,
) -> Result<twospeed_library::download::Downloaded, DownloadError> {
    download(&request(server, folder, None, None), &mut |_| {}, &|| {
        GoOn::Yes
    })
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_model_comes_whole_verified_and_is_not_fetched_twice() {
    let content = gguf(3 << 20);
    let server = Server::with(REPO, &[("m-Q8_0.gguf", &content)]);
    let folder = tempfile::tempdir().unwrap();
    let mut steps = Vec::new();
    let got = download(
        &request(&server, folder.path(), None, None),
        &mut |step| steps.push(step),
        &|| GoOn::Yes,
    )
    .unwrap();
    assert_eq!(got.path, folder.path().join("m-Q8_0.gguf"));
    assert!(got.verified && !got.was_there);
    assert_eq!(fs::read(&got.path).unwrap(), content);
    assert_eq!(
        names(folder.path()),
        ["m-Q8_0.gguf"],
        "nothing else is left"
    );
    let last = steps.last().unwrap();
    assert_eq!(
        (last.done, last.total),
        (content.len() as u64, content.len() as u64)
    );
    assert!(steps.windows(2).all(|pair| pair[0].done <= pair[1].done));
    assert!(
        server
            .requests()
            .iter()
            .all(|r| r.header("accept-encoding") == Some("identity".into()))
    );

    let before = server.requests().len();
    let again = fetch(&server, folder.path()).unwrap();
    assert!(again.was_there);
    let asked: Vec<_> = server.requests()[before..]
        .iter()
        .map(|r| r.path.clone())
        .collect();
    assert!(asked.iter().all(|path| path.contains("/api/")), "{asked:?}");
}

#[test]
fn a_download_that_was_cancelled_goes_on_from_where_it_was() {
    let content = gguf(4 << 20);
    let server = Server::with(REPO, &[("m.gguf", &content)]);
    let folder = tempfile::tempdir().unwrap();
    let here = Cell::new(0);
    let until_something_came = || match here.get() {
        0 => GoOn::Yes,
        _ => GoOn::No,
    };
    let asked_for = request(&server, folder.path(), None, None);
    let error = download(
        &asked_for,
        &mut |step| here.set(step.done),
        &until_something_came,
    )
    .unwrap_err();
    assert_eq!(error, DownloadError::Cancelled);
    let part = folder.path().join("m.gguf.part");
    let here = fs::metadata(&part).unwrap().len();
    assert!(here > 0 && here < content.len() as u64, "{here}");
    assert!(!folder.path().join("m.gguf").exists());

    let got = fetch(&server, folder.path()).unwrap();
    assert_eq!(fs::read(got.path).unwrap(), content);
    let resumed = server.requests().pop().unwrap();
    assert_eq!(resumed.header("range"), Some(format!("bytes={here}-")));
    assert_eq!(resumed.header("if-range"), Some("\"1\"".into()));
    assert_eq!(names(folder.path()), ["m.gguf"]);
}

#[test]
fn a_connection_cut_in_the_middle_is_taken_up_again() {
    let content = gguf(2 << 20);
    let server = Server::with(REPO, &[("m.gguf", &content)]);
    server.answer_files_with([Answer::CutAfter(700_000), Answer::CutAfter(300_000)]);
    let folder = tempfile::tempdir().unwrap();
    let mut retried = 0;
    let got = download(
        &request(&server, folder.path(), None, None),
        &mut |step| retried += usize::from(step.doing == Doing::Retrying),
        &|| GoOn::Yes,
    )
    .unwrap();
    assert_eq!(fs::read(got.path).unwrap(), content);
    assert_eq!(retried, 2);
    let ranges: Vec<_> = server
        .requests()
        .iter()
        .filter_map(|r| r.header("range"))
        .collect();
    assert_eq!(ranges, ["bytes=700000-", "bytes=1000000-"]);
}

#[test]
fn a_connection_that_keeps_breaking_ends_in_a_sentence_and_keeps_the_part() {
    let content = gguf(1 << 20);
    let server = Server::with(REPO, &[("m.gguf", &content)]);
    server.answer_files_with(
        std::iter::once(Answer::CutAfter(1000)).chain(std::iter::repeat_n(Answer::Status(503), 9)),
    );
    let folder = tempfile::tempdir().unwrap();
    let error = fetch(&server, folder.path()).unwrap_err();
    assert_eq!(error.code(), "download_broken");
    assert!(error.to_string().contains("(503)"), "{error}");
    assert_eq!(
        fs::metadata(folder.path().join("m.gguf.part"))
            .unwrap()
            .len(),
        1000
    );
}

#[test]
fn a_server_that_sends_the_whole_file_instead_of_the_rest_is_not_appended() {
    let content = gguf(1 << 20);
    let server = Server::with(REPO, &[("m.gguf", &content)]);
    server.answer_files_with([Answer::CutAfter(500_000), Answer::WholeDespiteRange]);
    let folder = tempfile::tempdir().unwrap();
    let got = fetch(&server, folder.path()).unwrap();
    assert_eq!(fs::read(got.path).unwrap(), content);
}

#[test]
fn the_part_of_a_file_that_changed_meanwhile_is_thrown_away() {
    let (old, new) = (gguf(1 << 20), [gguf(1 << 20), vec![7; 100]].concat());
    let folder = tempfile::tempdir().unwrap();
    let server = Server::with(REPO, &[("m.gguf", &old)]);
    server.answer_files_with(
        std::iter::once(Answer::CutAfter(500_000))
            .chain(std::iter::repeat_n(Answer::Status(500), 9)),
    );
    fetch(&server, folder.path()).unwrap_err();
    let server = Server::with(REPO, &[("m.gguf", &new)]);
    let got = fetch(&server, folder.path()).unwrap();
    assert_eq!(fs::read(got.path).unwrap(), new);
    assert_eq!(server.requests().pop().unwrap().header("range"), None);
}

#[test]
fn a_wrong_checksum_leaves_nothing_behind() {
    let content = gguf(1 << 20);
    let server = Server::with(REPO, &[("m.gguf", &content)]);
    server.answer_files_with([Answer::Spoilt]);
    let folder = tempfile::tempdir().unwrap();
    let error = fetch(&server, folder.path()).unwrap_err();
    assert_eq!(error.code(), "download_not_as_listed");
    assert!(error.to_string().contains("checksum"), "{error}");
    assert!(
        names(folder.path()).is_empty(),
        "{:?}",
        names(folder.path())
    );
}

#[test]
fn the_token_is_never_forwarded_to_another_server() {
    let content = gguf(100_000);
    let store = Server::with(REPO, &[("m.gguf", &content)]);
    let server = Server::with(REPO, &[("m.gguf", &content)]);
    server.answer_files_with([Answer::SendOnTo(format!(
        "{}/{REPO}/resolve/main/m.gguf?signature=x",
        store.address()
    ))]);
    let folder = tempfile::tempdir().unwrap();
    let asked = request(&server, folder.path(), None, Some("hf_secret"));
    let got = download(&asked, &mut |_| {}, &|| GoOn::Yes).unwrap();
    assert_eq!(fs::read(got.path).unwrap(), content);
    for asked in server.requests() {
        assert_eq!(
            asked.header("authorization"),
            Some("Bearer hf_secret".into())
        );
    }
    let elsewhere = store.requests();
    assert_eq!(elsewhere.len(), 1);
    assert_eq!(elsewhere[0].header("authorization"), None);
}

#[test]
fn every_refusal_is_one_sentence_and_no_file() {
    let content = gguf(1000);
    let told = |answer: Answer, token: Option<&str>| {
        let server = Server::with(REPO, &[("m.gguf", &content)]);
        server.answer_files_with(std::iter::repeat_n(answer, 9));
        let folder = tempfile::tempdir().unwrap();
        let asked = request(&server, folder.path(), None, token);
        let error = download(&asked, &mut |_| {}, &|| GoOn::Yes).unwrap_err();
        assert!(
            names(folder.path()).is_empty(),
            "{error}: {:?}",
            names(folder.path())
        );
        let sentence = error.to_string();
        assert!(
            !sentence.contains('\n') && sentence.ends_with('.'),
            "{sentence}"
        );
        sentence
    };
    assert!(told(Answer::Status(401), None).contains("set HF_TOKEN"));
    assert!(told(Answer::Status(403), Some("x")).contains("accept its licence"));
    assert!(told(Answer::Status(404), None).contains("(404)"));
    assert!(told(Answer::Status(503), None).contains("overloaded"));
    assert!(told(Answer::Page, None).contains("a web page"));
    assert!(told(Answer::NoGguf, None).contains("no GGUF file"));
}

#[test]
fn a_repository_that_is_not_there_and_a_server_that_is_not_there_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::with("other/repo", &[]);
    assert_eq!(
        fetch(&server, folder.path()).unwrap_err().code(),
        "download_not_found"
    );
    let mut asked = request(&server, folder.path(), None, None);
    // A port that nobody listens on: one that was free a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    asked.hub = Hub::new(&address, None).unwrap();
    let error = download(&asked, &mut |_| {}, &|| GoOn::Yes).unwrap_err();
    assert_eq!(error.code(), "download_offline");
    assert!(error.to_string().contains("Check the network"), "{error}");
}

#[test]
fn a_split_set_comes_whole() {
    let (one, two) = (gguf(200_000), gguf(300_000));
    let server = Server::with(
        REPO,
        &[
            ("Q4_K_M/m-Q4_K_M-00002-of-00002.gguf", &two),
            ("Q4_K_M/m-Q4_K_M-00001-of-00002.gguf", &one),
            ("m-Q8_0.gguf", &one),
        ],
    );
    let folder = tempfile::tempdir().unwrap();
    let asked = request(&server, folder.path(), Some("Q4_K_M"), None);
    let got = download(&asked, &mut |_| {}, &|| GoOn::Yes).unwrap();
    assert_eq!(got.bytes, 500_000);
    assert_eq!(
        names(folder.path()),
        [
            "m-Q4_K_M-00001-of-00002.gguf",
            "m-Q4_K_M-00002-of-00002.gguf"
        ]
    );
    assert_eq!(got.path, got.files[0]);
    assert_eq!(fs::read(&got.files[1]).unwrap(), two);
}

#[test]
fn a_hostile_listing_writes_nothing_anywhere() {
    let content = gguf(1000);
    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join("models");
    for name in ["../evil.gguf", "/tmp/evil.gguf", r"..\evil.gguf"] {
        let server = Server::with(REPO, &[(name, &content)]);
        let error = fetch(&server, &folder).unwrap_err();
        assert_eq!(error.code(), "download_bad_name", "{name}");
    }
    assert!(
        names(above.path()).is_empty(),
        "not even the folder is made"
    );
}

#[test]
fn another_file_of_that_name_is_not_overwritten_unless_told_to() {
    let content = gguf(1000);
    let server = Server::with(REPO, &[("m.gguf", &content)]);
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("m.gguf");
    fs::write(&place, "mine").unwrap();
    assert_eq!(
        fetch(&server, folder.path()).unwrap_err().code(),
        "target_exists"
    );
    assert_eq!(fs::read(&place).unwrap(), b"mine");
    let mut asked = request(&server, folder.path(), None, None);
    asked.overwrite = true;
    download(&asked, &mut |_| {}, &|| GoOn::Yes).unwrap();
    assert_eq!(fs::read(&place).unwrap(), content);
}

#[test]
fn a_download_pauses_while_it_is_told_to() {
    let content = gguf(2 << 20);
    let server = Server::with(REPO, &[("m.gguf", &content)]);
    let folder = tempfile::tempdir().unwrap();
    let (here, pauses) = (Cell::new(0), Cell::new(3));
    let with_a_break = || match (here.get(), pauses.get()) {
        (0, _) | (_, 0) => GoOn::Yes,
        (_, left) => {
            pauses.set(left - 1);
            GoOn::Pause
        }
    };
    let mut paused = 0;
    let asked_for = request(&server, folder.path(), None, None);
    let got = download(
        &asked_for,
        &mut |step| {
            here.set(step.done);
            paused += usize::from(step.doing == Doing::Paused);
        },
        &with_a_break,
    )
    .unwrap();
    assert_eq!(paused, 3);
    assert_eq!(fs::read(got.path).unwrap(), content);
}

#[test]
fn a_file_without_a_listed_checksum_is_not_called_verified() {
    let content = gguf(1000);
    let server = Server::without_checksums(REPO, &[("m.gguf", &content)]);
    let folder = tempfile::tempdir().unwrap();
    assert!(!fetch(&server, folder.path()).unwrap().verified);
}
