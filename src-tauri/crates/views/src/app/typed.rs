//! A path as a person writes it.

use std::path::{Path, PathBuf};

use twospeed_library::display::{shortened, shown};

use crate::Problem;

/// The path that was meant: quotes and blanks around it go, `~` is the home folder, and
/// `file://` is taken off with its percent signs.
///
/// Errors: `path_unusable` for nothing at all and for a path that begins nowhere.
pub(super) fn typed_path(typed: &str, home: Option<&Path>) -> Result<PathBuf, Problem> {
    let text = unquoted(typed.trim());
    if text.is_empty() {
        return Err(unusable("Write the whole path of a folder or file.".into()));
    }
    let path = match address(text) {
        Some(address) => address?,
        None => at_home(text, home)?,
    };
    if path.as_os_str().as_encoded_bytes().contains(&0) {
        return Err(unusable(format!(
            "{} is no path: it holds a NUL.",
            short(text)
        )));
    }
    if !path.is_absolute() {
        return Err(unusable(format!(
            "{} does not say where it begins: write the whole path, as in {}.",
            short(text),
            if cfg!(windows) {
                r"C:\models"
            } else {
                "/home/me/models or ~/models"
            }
        )));
    }
    Ok(path)
}

fn unusable(sentence: String) -> Problem {
    Problem::new("path_unusable", sentence)
}

fn short(text: &str) -> String {
    shortened(&shown(text), 120)
}

/// Without the quotes that file managers and shells put around a path.
fn unquoted(text: &str) -> &str {
    ['"', '\'']
        .into_iter()
        .find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
        .unwrap_or(text)
}

fn at_home(text: &str, home: Option<&Path>) -> Result<PathBuf, Problem> {
    let below = match text.strip_prefix('~') {
        Some("") => "",
        Some(rest) if rest.starts_with(std::path::is_separator) => &rest[1..],
        // `~someone` is a shell's word for another's home, or a name: it is refused as relative.
        _ => return Ok(PathBuf::from(text)),
    };
    let home = home.ok_or_else(|| {
        unusable(format!(
            "{} cannot be found: there is no home folder. Write the whole path.",
            short(text)
        ))
    })?;
    // Joining nothing would add a separator.
    Ok(if below.is_empty() {
        home.to_owned()
    } else {
        home.join(below)
    })
}

/// The path of a `file://` address; `None` for what is none.
fn address(text: &str) -> Option<Result<PathBuf, Problem>> {
    let scheme = text
        .get(..5)
        .filter(|scheme| scheme.eq_ignore_ascii_case("file:"))?;
    let rest = &text[scheme.len()..];
    let rest = match rest.strip_prefix("//") {
        // A host stands between the second and the third slash; only this machine has files here.
        Some(rest) => match rest.find('/') {
            Some(at) if at == 0 || rest[..at].eq_ignore_ascii_case("localhost") => &rest[at..],
            _ => {
                return Some(Err(unusable(format!(
                    "{} lies on another machine: copy it here or mount its folder.",
                    short(text)
                ))));
            }
        },
        None => rest,
    };
    let bytes = decoded(rest.as_bytes());
    Some(
        path_from_bytes(bytes)
            .ok_or_else(|| unusable(format!("{} is no path on this system.", short(text)))),
    )
}

/// With `%41` made `A`; a percent sign that begins no byte stands for itself.
fn decoded(text: &[u8]) -> Vec<u8> {
    let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
    let mut bytes = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match (byte, digit(text.get(at + 1)), digit(text.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                at += 3;
            }
            _ => {
                bytes.push(*byte);
                at += 1;
            }
        }
    }
    bytes
}

#[cfg(unix)]
fn path_from_bytes(bytes: Vec<u8>) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    Some(std::ffi::OsString::from_vec(bytes).into())
}

/// `/C:/models` is `C:/models` here.
#[cfg(not(unix))]
fn path_from_bytes(bytes: Vec<u8>) -> Option<PathBuf> {
    let text = String::from_utf8(bytes).ok()?;
    let drive = text
        .strip_prefix('/')
        .filter(|rest| rest.get(1..2) == Some(":"));
    Some(PathBuf::from(drive.unwrap_or(&text)))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn typed(text: &str) -> Result<PathBuf, String> {
        typed_path(text, Some(Path::new("/home/ada"))).map_err(|problem| problem.message)
    }

    #[test]
    fn a_path_is_understood_as_people_write_it() {
        for (text, path) in [
            ("/models", "/models"),
            ("  /models \n", "/models"),
            ("\"/my models\"", "/my models"),
            ("'/my models'", "/my models"),
            ("~", "/home/ada"),
            ("~/models", "/home/ada/models"),
            ("file:///my%20models/%E6%A8%A1.gguf", "/my models/模.gguf"),
            ("FILE://localhost/models", "/models"),
            ("file:/models", "/models"),
            ("file:///100%", "/100%"),
            ("file:///a%zz", "/a%zz"),
            ("/a%20b", "/a%20b"),
        ] {
            assert_eq!(typed(text), Ok(path.into()), "{text}");
        }
    }

    #[test]
    fn an_address_may_name_a_file_of_any_bytes() {
        use std::os::unix::ffi::OsStrExt;
        let path = typed("file:///m%FF.gguf").unwrap();
        assert_eq!(path.as_os_str().as_bytes(), b"/m\xff.gguf");
    }

    #[test]
    fn what_begins_nowhere_is_refused_with_a_sentence() {
        for text in [
            "",
            "  ",
            "\"\"",
            "models",
            "./models",
            "../x",
            "~bob/models",
            "file://server/x",
            "file:",
            "https://a/b",
            "/a\0b",
            "file:///a%00b",
            "\"",
        ] {
            let sentence = typed(text).unwrap_err();
            assert!(sentence.ends_with('.'), "{text:?}: {sentence}");
        }
        assert!(typed_path("~/x", None).is_err());
    }
}
