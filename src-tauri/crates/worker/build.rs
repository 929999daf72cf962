//! Puts the engine's libraries into one folder beside the binary, and compiles the one function of
//! llama.cpp's C++ interface that its C interface lacks.
//!
//! The sys crate leaves its libraries in its own output folder and only dangling links in the target
//! folder. What a program needs to run is gathered here: `target/<profile>/engine` on Unix (the
//! binary finds it by its rpath), the target folder itself on Windows, where libraries are looked
//! for beside the program.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/breakdown.cpp");

    // These two come from the build of llama-cpp-sys-2 that this very build links, whatever other
    // output folders of it lie in the target folder.
    let installed = folder("DEP_LLAMA_ROOT")?;
    let backends = folder("DEP_LLAMA_BACKENDS_DIR")?;

    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .include(installed.join("include"))
        .file("src/breakdown.cpp")
        .compile("twospeed_breakdown");

    let windows = env::var("CARGO_CFG_WINDOWS").is_ok();
    let profile = folder("OUT_DIR")?
        .ancestors()
        .nth(3)
        .ok_or("OUT_DIR lies outside a target folder")?
        .to_path_buf();
    let engine = if windows {
        profile.clone()
    } else {
        profile.join("engine")
    };
    fs::create_dir_all(&engine)?;

    let mut placed = Vec::new();
    for library in linked_libraries(&installed, windows)?
        .into_iter()
        .chain(files(&backends)?)
    {
        let name = library.file_name().ok_or("a library without a name")?;
        let place = engine.join(name);
        put(&fs::canonicalize(&library)?, &place)?;
        println!("cargo::rerun-if-changed={}", library.display());
        // Watched too, so that a folder that was deleted or holds another build's file is set right.
        println!("cargo::rerun-if-changed={}", place.display());
        placed.push(place);
    }
    if !windows {
        remove_others(&engine, &placed)?;
    }
    for folder in [
        profile.clone(),
        profile.join("deps"),
        profile.join("examples"),
    ] {
        remove_dangling_links(&folder)?;
    }
    Ok(())
}

fn folder(variable: &str) -> Result<PathBuf, Box<dyn Error>> {
    println!("cargo::rerun-if-env-changed={variable}");
    match env::var_os(variable) {
        Some(path) => Ok(PathBuf::from(path)),
        None => Err(format!(
            "{variable} is not set: llama-cpp-sys-2 was built without dynamic-backends"
        )
        .into()),
    }
}

fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    match fs::read_dir(folder) {
        Ok(entries) => {
            for entry in entries {
                found.push(entry?.path());
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    found.sort();
    Ok(found)
}

/// The libraries that the binary itself is linked to, under the names the loader asks for.
fn linked_libraries(installed: &Path, windows: bool) -> io::Result<Vec<PathBuf>> {
    let folders: &[&str] = if windows { &["bin"] } else { &["lib", "lib64"] };
    let mut found = Vec::new();
    for folder in folders {
        for path in files(&installed.join(folder))? {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                continue;
            };
            // llama-common (chat templates, downloads; it needs OpenSSL) is built but never linked.
            if is_runtime_name(name, windows) && !name.contains("llama-common") {
                found.push(path);
            }
        }
    }
    Ok(found)
}

/// `libllama.so.0` and `libllama.0.dylib` are asked for at run time; `libllama.so` is for linking
/// and `libllama.so.0.6.0` is what both point to.
fn is_runtime_name(name: &str, windows: bool) -> bool {
    if windows {
        return name.ends_with(".dll");
    }
    let version = if let Some((_, version)) = name.split_once(".so.") {
        version
    } else if let Some((_, version)) = name
        .strip_suffix(".dylib")
        .and_then(|stem| stem.split_once('.'))
    {
        version
    } else {
        return false;
    };
    !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit())
}

/// Places a file under a name, whole or not at all, with the modification time of its source (a
/// newer time would make cargo run this script every time).
fn put(source: &Path, place: &Path) -> io::Result<()> {
    let temporary = place.with_extension(format!("new-{}", std::process::id()));
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    if fs::hard_link(source, &temporary).is_err() {
        fs::copy(source, &temporary)?;
        fs::File::options()
            .write(true)
            .open(&temporary)?
            .set_modified(fs::metadata(source)?.modified()?)?;
    }
    fs::rename(&temporary, place)?;
    // Renaming onto another name of the same file does nothing and leaves both.
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Libraries of another build (a GPU backend that is switched off now) must not be found and loaded.
fn remove_others(engine: &Path, placed: &[PathBuf]) -> io::Result<()> {
    for path in files(engine)? {
        if !placed.contains(&path) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// The sys crate's build script stops with "file exists" at its own dangling links when it runs a
/// second time; nothing uses them.
fn remove_dangling_links(folder: &Path) -> io::Result<()> {
    for path in files(folder)? {
        let is_link = fs::symlink_metadata(&path).is_ok_and(|meta| meta.file_type().is_symlink());
        let is_engine = path
            .file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.starts_with("libllama") || name.starts_with("libggml"));
        if is_link && is_engine && !path.exists() {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}
