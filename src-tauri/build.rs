//! Prepares what Tauri puts into the program: configuration, permissions, the page.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

// The list of commands as the app's doorways have it: permissions are made from the same one.
#[path = "crates/views/src/commands.rs"]
mod commands;

macro_rules! names {
    ($($name:ident ( $($argument:tt)* ) $(tells $message:ident)? -> $answer:ty;)*) => {
        const COMMANDS: &[&str] = &[$(stringify!($name)),*];
    };
}

for_each_command!(names);

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=crates/views/src/commands.rs");
    println!("cargo:rerun-if-changed=../ui/dist");
    if !Path::new("../ui/dist/index.html").is_file() {
        without_page()?;
    }
    let manifest = tauri_build::AppManifest::new().commands(COMMANDS);
    let attributes = tauri_build::Attributes::new().app_manifest(manifest);
    tauri_build::try_build(attributes).map_err(io::Error::other)
}

/// A checkout whose page is not built yet compiles all the same, with a page that says so.
fn without_page() -> io::Result<()> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    let folder = out.join("no-page");
    fs::create_dir_all(&folder)?;
    fs::write(
        folder.join("index.html"),
        "<!doctype html><html lang=\"en\"><title>Twospeed</title><p>The page of this build is missing: run \
         <code>npm run build</code> in the project's folder, then build the window again.</p></html>",
    )?;
    let config = serde_json::json!({ "build": { "frontendDist": folder } });
    println!("cargo:warning=ui/dist is not there: this window will have no page");
    println!("cargo:rustc-env=TAURI_CONFIG={config}");
    Ok(())
}
