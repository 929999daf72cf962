use std::fs;
use std::path::Path;
use std::sync::Arc;

use twospeed_engine::FakeEngine;
use twospeed_library::FileType;
use twospeed_views::frame::AppEvent;
use twospeed_views::models::{FactName, Place};

use crate::{Window, row, write_model};

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn on_a_new_machine_there_is_the_built_in_model_and_one_offer() {
    let window = Window::new().await;
    window.app.start().await.unwrap();
    let view = window.scanned().await;
    let rows: Vec<_> = view.groups.iter().flat_map(|group| &group.rows).collect();
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert!(matches!(rows[0].place, Place::CanBeMade { .. }));
    assert_eq!(rows[0].hindrance, None, "it is made when it is measured");
    assert_eq!(
        rows[0].file_bytes,
        Some(95_081_120),
        "the size that its maker wrote down"
    );
    assert!(rows[0].memory_bytes > rows[0].file_bytes);
    assert!(
        matches!(&rows[1].place, Place::CanBeDownloaded { from } if from.contains("HuggingFaceTB"))
    );
    assert!(view.notes.is_empty() && view.broken.is_empty());
    let facts = window.app.facts(rows[0].id.clone()).await.unwrap();
    let fact = |name| facts.facts.iter().find(|fact| fact.name == name).unwrap();
    assert_eq!(fact(FactName::Layers).number, Some(16.0));
    assert!(facts.warnings.is_empty(), "{:?}", facts.warnings);
    assert!(window.app.facts("nobody".into()).await.is_err());
}

#[tokio::test]
async fn a_folder_is_a_group_with_what_is_there_and_what_can_be_made_of_it() {
    let window = Window::new().await;
    let folder = window.path("models");
    write_model(&folder.join("small.Q8_0.gguf"), "Small One", FileType::Q8_0);
    window.app.start().await.unwrap();
    let added = window.app.add_path(text(&folder)).await.unwrap();
    assert!(!added.known && added.row.is_none() && !added.folder.is_file);
    let view = window.scanned().await;
    assert_eq!((view.folders.len(), view.folders[0].models), (1, 1));

    let there = row(&view, "Small One", "Q8_0");
    assert_eq!((&there.place, &there.hindrance), (&Place::OnDisk, &None));
    assert_eq!(there.file.as_deref(), Some("small.Q8_0.gguf"));
    let bytes = fs::metadata(folder.join("small.Q8_0.gguf")).unwrap().len();
    assert_eq!(there.file_bytes, Some(bytes));
    // 4 heads of 64 in K and V, f16, one layer, 4096 cells: 4096 * 2 * 256 * 2 bytes.
    let weights = there.memory_bytes.unwrap() - 4096 * 2 * 256 * 2;
    assert!(
        weights <= bytes && weights > bytes / 2,
        "{weights} of {bytes}"
    );
    assert_eq!(there.fits, Some(true));
    assert_eq!(
        (&there.prefill, &there.decode_ceiling),
        (&None, &None),
        "unknown is not zero"
    );

    let made = row(&view, "Small One", "Q4_K_M");
    let from = Place::CanBeMade {
        from: "Q8_0".into(),
        lossy_source: false,
    };
    assert_eq!(made.place, from);
    assert!(made.file_bytes < there.file_bytes);
    assert!(made.hindrance.is_some() && made.path.is_none());
    let bits: Vec<_> = view
        .groups
        .iter()
        .find(|group| group.name == "Small One")
        .unwrap()
        .rows
        .iter()
        .map(|row| row.bits_per_weight.unwrap())
        .collect();
    assert!(bits.is_sorted(), "{bits:?}");
}

#[tokio::test]
async fn rows_keep_their_ids_over_scans_and_restarts() {
    let window = Window::new().await;
    let folder = window.path("models");
    write_model(&folder.join("small.gguf"), "Small One", FileType::Q8_0);
    window.app.start().await.unwrap();
    window.app.add_path(text(&folder)).await.unwrap();
    let ids = |view: &twospeed_views::models::ModelsView| -> Vec<String> {
        let groups = view.groups.iter();
        groups
            .flat_map(|group| {
                std::iter::once(&group.id).chain(group.rows.iter().map(|row| &row.id))
            })
            .cloned()
            .collect()
    };
    let before = ids(&window.scanned().await);
    write_model(&folder.join("another.gguf"), "Another One", FileType::Q4_0);
    window.app.scan().await.unwrap();
    let between = ids(&window.scanned().await);
    assert!(before.iter().all(|id| between.contains(id)));
    assert!(between.len() > before.len());

    let again = Window::with(Arc::new(FakeEngine::new()), window.around.clone()).await;
    again.app.start().await.unwrap();
    assert_eq!(ids(&again.scanned().await), between, "the folder was kept");
}

#[tokio::test]
async fn two_windows_on_one_data_folder_see_each_others_folders() {
    let one = Window::new().await;
    let other = Window::with(Arc::new(FakeEngine::new()), one.around.clone()).await;
    one.app.start().await.unwrap();
    other.app.start().await.unwrap();
    for name in ["a", "b"] {
        fs::create_dir(one.path(name)).unwrap();
    }
    let (a, b) = (text(&one.path("a")), text(&one.path("b")));
    let (first, second) = tokio::join!(one.app.add_path(a), other.app.add_path(b));
    first.unwrap();
    second.unwrap();
    for window in [&one, &other] {
        window.app.scan().await.unwrap();
        assert_eq!(window.scanned().await.folders.len(), 2);
    }
}

#[tokio::test]
async fn a_path_is_added_as_people_write_it_and_only_once() {
    let window = Window::new().await;
    window.app.start().await.unwrap();
    let home = window.path("home/my models");
    write_model(&home.join("small.gguf"), "Small One", FileType::Q8_0);
    let address = format!("file://{}", text(&home).replace(' ', "%20"));
    let forms = [
        "~/my models".to_owned(),
        format!("\"{}/\" ", text(&home)),
        address,
    ];
    let mut ids = Vec::new();
    for (number, form) in forms.iter().enumerate() {
        let added = window.app.add_path(form.clone()).await.unwrap();
        assert_eq!(added.known, number > 0, "{form}");
        ids.push(added.folder.id);
    }
    assert!(ids.iter().all(|id| *id == ids[0]));
    assert_eq!(window.scanned().await.folders.len(), 1);
    // A file in it is not added again, but led to.
    let added = window
        .app
        .add_path(text(&home.join("small.gguf")))
        .await
        .unwrap();
    assert!(added.known && added.folder.id == ids[0]);
    assert_eq!(
        added.row,
        Some(row(&window.scanned().await, "Small One", "Q8_0").id.clone())
    );
}

#[tokio::test]
async fn what_cannot_be_added_is_refused_with_a_sentence() {
    let window = Window::new().await;
    window.app.start().await.unwrap();
    fs::write(window.path("notes.txt"), "no model").unwrap();
    for (path, code) in [
        ("models".to_owned(), "path_unusable"),
        (String::new(), "path_unusable"),
        (text(&window.path("nowhere")), "path_missing"),
        (text(&window.path("notes.txt")), "file_unusable"),
        (text(&window.path("notes.txt/x")), "path_missing"),
        ("/dev/null".to_owned(), "path_unusable"),
    ] {
        let refused = window.app.add_path(path.clone()).await.unwrap_err();
        assert_eq!(refused.code, code, "{path}: {refused}");
        assert!(
            refused.message.ends_with('.') && !refused.message.contains('\n'),
            "{refused}"
        );
    }
    assert!(window.scanned().await.folders.is_empty());
}

#[tokio::test]
async fn a_single_file_is_added_alone_and_can_be_taken_out() {
    let window = Window::new().await;
    window.app.start().await.unwrap();
    let folder = window.path("models");
    write_model(&folder.join("small.gguf"), "Small One", FileType::Q8_0);
    write_model(&folder.join("other.gguf"), "Other One", FileType::Q8_0);
    let added = window
        .app
        .add_path(text(&folder.join("small.gguf")))
        .await
        .unwrap();
    assert!(added.folder.is_file && added.row.is_some());
    let view = window.scanned().await;
    assert_eq!(
        Some(&row(&view, "Small One", "Q8_0").id),
        added.row.as_ref()
    );
    assert!(view.groups.iter().all(|group| group.name != "Other One"));

    window.app.remove_folder(added.folder.id).await.unwrap();
    let view = window.scanned().await;
    assert!(view.folders.is_empty());
    assert!(view.groups.iter().all(|group| group.name != "Small One"));
    assert!(folder.join("small.gguf").exists(), "the file stays");
}

#[tokio::test]
async fn files_that_are_opened_are_in_the_list_when_the_page_hears_of_them() {
    let mut window = Window::new().await;
    let file = window.path("models/small.gguf");
    write_model(&file, "Small One", FileType::Q8_0);
    window.app.opened(vec![file.clone()]);
    // Started with it: `start` tells.
    let mut opened = window.app.start().await.unwrap().opened;
    if opened.is_empty() {
        // Asked too early: it then comes as an event.
        let rows = window.hear(|event| match event {
            AppEvent::Opened { rows } => Some(rows.clone()),
            _ => None,
        });
        opened = rows.await;
    }
    let view = window.app.models().await.unwrap();
    assert_eq!(row(&view, "Small One", "Q8_0").id, opened[0]);

    // Dropped later: an event tells, and what is no model is said.
    fs::write(window.path("holiday.jpg"), "no model").unwrap();
    let again = window.path("models/again.gguf");
    write_model(&again, "Again", FileType::Q4_0);
    window.app.opened(vec![window.path("holiday.jpg"), again]);
    let wanted = |event: &AppEvent| match event {
        AppEvent::Opened { rows } if *rows != opened => Some(rows.clone()),
        _ => None,
    };
    let rows = window.hear(wanted).await;
    let view = window.app.models().await.unwrap();
    assert_eq!(row(&view, "Again", "Q4_0").id, rows[0]);
    window
        .hear(|event| match event {
            AppEvent::Notice { message, .. } => message.contains("holiday.jpg").then_some(()),
            _ => None,
        })
        .await;
}

#[tokio::test]
async fn a_folder_that_disappears_leaves_a_line_that_says_so() {
    let window = Window::new().await;
    window.app.start().await.unwrap();
    let folder = window.path("models");
    for number in 0..40 {
        write_model(
            &folder.join(format!("{number}.gguf")),
            &format!("Number {number}"),
            FileType::Q4_0,
        );
    }
    window.app.add_path(text(&folder)).await.unwrap();
    // While the scan reads it.
    fs::remove_dir_all(&folder).unwrap();
    window.app.scan().await.unwrap();
    let view = window.scanned().await;
    assert!(!view.folders[0].exists);
    assert_eq!(view.notes, [format!("{} does not exist.", text(&folder))]);
    assert_eq!(
        view.groups.len(),
        2,
        "only the built-in model and the offer"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn a_hostile_folder_is_a_list_like_any_other() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let malformed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/data/gguf/hostile");
    let window = Window::new().await;
    let folder = window.path("models");
    fs::create_dir(&folder).unwrap();
    let long = format!("{}.gguf", "x".repeat(250));
    let names: [&[u8]; 7] = [
        b"a\nb\r.gguf",
        b"<img src=x onerror=alert(1)>.gguf",
        "a\u{202e}fugg.b\u{200f}.gguf".as_bytes(),
        b"\xff\xfe.gguf",
        b"'; DROP TABLE folder; --.gguf",
        b"$(reboot) `id`.gguf",
        long.as_bytes(),
    ];
    for name in names {
        write_model(
            &folder.join(OsStr::from_bytes(name)),
            "<script>\u{202e}\nx</script>",
            FileType::Q4_0,
        );
    }
    window.app.start().await.unwrap();
    window.app.add_path(text(&folder)).await.unwrap();
    window
        .app
        .add_path(text(&malformed.canonicalize().unwrap()))
        .await
        .unwrap();
    let view = window.scanned().await;
    let malformed_files = fs::read_to_string(malformed.join("expectations.csv"))
        .unwrap()
        .lines()
        .count()
        - 1;
    assert_eq!(view.broken.len() + view.helpers.len(), malformed_files);
    let rows: Vec<_> = view
        .groups
        .iter()
        .flat_map(|group| &group.rows)
        .filter(|row| row.place == Place::OnDisk)
        .collect();
    assert_eq!(rows.len(), names.len());
    for found in &rows {
        let facts = window.app.facts(found.id.clone()).await.unwrap();
        assert_eq!(facts.row, found.id);
        window
            .app
            .reveal(found.path.clone().unwrap())
            .await
            .unwrap();
    }
    assert_eq!(window.desk.revealed.lock().unwrap().len(), names.len());
    // Nothing that is shown acts, and every broken file has its sentence.
    let shown = serde_json::to_value(&view).unwrap();
    let mut texts = Vec::new();
    collect(&shown, &mut texts);
    let acts =
        |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{200e}' | '\u{200f}');
    assert!(texts.iter().all(|text| !text.contains(acts)), "{texts:?}");
    assert!(view.broken.iter().all(|file| file.sentence.ends_with('.')));
}

fn collect(value: &serde_json::Value, texts: &mut Vec<String>) {
    match value {
        serde_json::Value::String(text) => texts.push(text.clone()),
        serde_json::Value::Array(values) => values.iter().for_each(|value| collect(value, texts)),
        serde_json::Value::Object(fields) => {
            fields.values().for_each(|value| collect(value, texts))
        }
        _ => {}
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_picked_folder_of_any_bytes_can_be_added() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let window = Window::new().await;
    window.app.start().await.unwrap();
    let odd = window.around.path().join(OsStr::from_bytes(b"m\xffn"));
    write_model(&odd.join("small.gguf"), "Small One", FileType::Q8_0);
    *window.desk.pick.lock().unwrap() = Some(odd);
    let picked = window.app.pick_folder().await.unwrap().unwrap();
    window.app.add_path(picked).await.unwrap();
    row(&window.scanned().await, "Small One", "Q8_0");
    assert_eq!(
        window.app.pick_folder().await.unwrap(),
        None,
        "nothing was picked"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_to_a_listed_file_is_that_file() {
    let window = Window::new().await;
    window.app.start().await.unwrap();
    let folder = window.path("models");
    write_model(&folder.join("small.gguf"), "Small One", FileType::Q8_0);
    window.app.add_path(text(&folder)).await.unwrap();
    let id = row(&window.scanned().await, "Small One", "Q8_0").id.clone();
    let link = window.path("link.gguf");
    std::os::unix::fs::symlink(folder.join("small.gguf"), &link).unwrap();
    let added = window.app.add_path(text(&link)).await.unwrap();
    assert_eq!(added.row, Some(id));
    let view = window.scanned().await;
    let group = view.groups.iter().find(|group| group.name == "Small One");
    let on_disk = group
        .unwrap()
        .rows
        .iter()
        .filter(|row| row.place == Place::OnDisk);
    assert_eq!(on_disk.count(), 1, "each file once");
}

#[tokio::test]
async fn half_a_built_in_model_is_as_good_as_none() {
    let window = Window::new().await;
    fs::create_dir_all(window.path("data/models")).unwrap();
    fs::write(
        window.path("data/models/twospeed-builtin-150m-Q4_K_M.gguf"),
        b"GGUF",
    )
    .unwrap();
    window.app.start().await.unwrap();
    let view = window.scanned().await;
    let group = view.groups.iter().find(|group| group.synthetic).unwrap();
    assert_eq!((group.rows.len(), &group.rows[0].hindrance), (1, &None));
    assert!(matches!(group.rows[0].place, Place::CanBeMade { .. }));
    assert!(view.broken.is_empty());
}
