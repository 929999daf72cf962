//! Where the binary finds the engine's libraries: in `engine` beside it (a build), or in its own
//! folder (a package, where the command is a link into it).

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let folders: &[&str] = match std::env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("windows") => &[],
        Ok("macos") => &["@executable_path/engine", "@executable_path"],
        _ => {
            // RPATH instead of RUNPATH: it holds for the libraries' own libraries too, and no
            // LD_LIBRARY_PATH puts others in their place.
            println!("cargo::rustc-link-arg-bins=-Wl,--disable-new-dtags");
            &["$ORIGIN/engine", "$ORIGIN"]
        }
    };
    for folder in folders {
        println!("cargo::rustc-link-arg-bins=-Wl,-rpath,{folder}");
    }
}
