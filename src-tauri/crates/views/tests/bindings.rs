//! The page's types are those of the Rust side.

#[test]
fn the_committed_types_are_current() {
    let file = "../../../ui/src/lib/backend/bindings.ts";
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let committed = std::fs::read_to_string(&path).unwrap();
    assert_eq!(
        committed,
        twospeed_views::bindings::typescript(),
        "run `npm run bindings` and commit {file}"
    );
}
