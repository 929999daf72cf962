//! What differs by operating system.

use std::ffi::OsString;

/// A file name from the bytes that `OsStr::as_encoded_bytes` gave, changed in ASCII only.
#[cfg(unix)]
pub(crate) fn file_name(bytes: Vec<u8>) -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes)
}

/// A file name from the bytes that `OsStr::as_encoded_bytes` gave, changed in ASCII only. A name
/// that is no Unicode comes out changed, and the file is then not found.
#[cfg(not(unix))]
pub(crate) fn file_name(bytes: Vec<u8>) -> OsString {
    String::from_utf8_lossy(&bytes).into_owned().into()
}
