//! From a path to a [`Model`].

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use crate::assemble::Assembly;
use crate::error::{Error, Fault};
use crate::header::{Header, Opening, read_header};
use crate::metadata::Metadata;
use crate::model::{Model, Part, Split};
use crate::set::{MAX_PARTS, SetName};
use crate::source::Stop;
use crate::text::shown;

/// Reads the header of the file under `path`, and never its data. The path of any part of a split
/// set gives the whole set; parts that are not there are listed.
///
/// A truncated file is read too ([`crate::Data::Truncated`]): see [`Model::check`].
/// Errors: each a sentence that names the file.
///
/// ```no_run
/// let model = twospeed_gguf::read("Qwen3-8B-Q4_K_M.gguf".as_ref())?;
/// println!("{}: {} parameters, {:?}", model.name, model.parameters, model.quantization);
/// model.check()?;
/// # Ok::<(), twospeed_gguf::Error>(())
/// ```
pub fn read(path: &Path) -> Result<Model, Error> {
    let (part, header) = open(path)?;
    match place(path, &header.metadata)? {
        Some((number, parts)) => read_set(path, Part { number, ..part }, header, parts),
        None => single(part, header, None),
    }
}

/// Reads a header from `reader`, which starts at the first byte of a file of `total_bytes` bytes:
/// a remote file's, or one in memory. Of a split set it sees this part alone.
///
/// `name` stands for the path in sentences and in the model's name. The reader may end after the
/// header; when it ends inside, the error is [`Error::HeaderContinues`].
pub fn read_from(reader: impl Read, name: &str, total_bytes: u64) -> Result<Model, Error> {
    let path = Path::new(name);
    let header = header_of(reader, path, total_bytes)?;
    let split = place(path, &header.metadata)?.map(|(number, parts)| alone(path, number, parts));
    let number = split.as_ref().map_or(1, |split| split.part);
    single(part_of(path, number, total_bytes, &header), header, split)
}

/// The model of one file.
fn single(part: Part, header: Header, split: Option<Split>) -> Result<Model, Error> {
    let mut assembly = Assembly::new(&part.path);
    assembly.add(part, header)?;
    assembly.finish(split)
}

/// The place of a part that is there without any other.
fn alone(path: &Path, part: u32, parts: u32) -> Split {
    let others = (1..=parts).filter(|other| *other != part);
    Split {
        part,
        parts,
        missing: others.map(|other| part_name(path, other, parts)).collect(),
    }
}

fn part_of(path: &Path, number: u32, bytes: u64, header: &Header) -> Part {
    Part {
        path: path.to_owned(),
        number,
        bytes,
        header_bytes: header.bytes,
    }
}

/// Opens one file and reads its header.
fn open(path: &Path) -> Result<(Part, Header), Error> {
    let unreadable = |reason: io::Error| match reason.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            Error::Missing { file: shown(path) }
        }
        _ => Error::Unreadable {
            file: shown(path),
            reason,
        },
    };
    // Asked before opening: to open a pipe would wait for its other end.
    let about = fs::metadata(path).map_err(unreadable)?;
    if about.is_dir() {
        return Err(Error::Folder { file: shown(path) });
    }
    if !about.is_file() {
        return Err(Error::NotRegular { file: shown(path) });
    }
    if about.len() == 0 {
        return Err(Error::Empty { file: shown(path) });
    }
    let file = File::open(path).map_err(unreadable)?;
    let header = header_of(file, path, about.len())?;
    Ok((part_of(path, 1, about.len(), &header), header))
}

fn header_of(reader: impl Read, path: &Path, total: u64) -> Result<Header, Error> {
    let file = || shown(path);
    match read_header(reader, total) {
        Ok(Opening::Header(header)) => Ok(header),
        Ok(Opening::NotGguf(what)) => Err(Error::NotGguf { file: file(), what }),
        Err(Stop::Fault(fault)) => Err(Error::Malformed {
            file: file(),
            fault,
        }),
        Err(Stop::Io(reason)) => Err(Error::Unreadable {
            file: file(),
            reason,
        }),
        Err(Stop::Dry { have }) => Err(Error::HeaderContinues { file: file(), have }),
    }
}

/// The part's number (from 1; the file counts from 0) and the number of parts, where the header
/// says that there is more than one.
fn place(path: &Path, metadata: &Metadata) -> Result<Option<(u32, u32)>, Error> {
    let Some(parts) = metadata.u64("split.count").filter(|parts| *parts > 1) else {
        return Ok(None);
    };
    let number = metadata.u64("split.no").unwrap_or(0).saturating_add(1);
    if number > parts || parts > MAX_PARTS.into() {
        let fault = Fault::Place { number, parts };
        return Err(Error::Malformed {
            file: shown(path),
            fault,
        });
    }
    Ok(Some((number as u32, parts as u32)))
}

/// The file name of another part, or its number where the name does not follow the pattern.
fn part_name(path: &Path, part: u32, parts: u32) -> String {
    match SetName::of(path).filter(|set| set.parts == parts) {
        Some(set) => set
            .path(part)
            .file_name()
            .map(|name| shown(name.as_ref()))
            .unwrap_or_default(),
        None => format!("part {part} of {parts}"),
    }
}

/// Reads the other parts of the set that `part` is of.
fn read_set(path: &Path, part: Part, header: Header, parts: u32) -> Result<Model, Error> {
    let Some(set) = SetName::of(path) else {
        // Renamed: where its other parts are is anyone's guess.
        let split = alone(path, part.number, parts);
        return single(part, header, Some(split));
    };
    check_place(path, &header, set.part, set.parts)?;
    let mut split = Split {
        part: set.part,
        parts,
        missing: Vec::new(),
    };
    let mut assembly = Assembly::new(&set.path(1));
    let mut named = Some((part, header));
    for number in 1..=parts {
        let path = set.path(number);
        let known = named.take_if(|(part, _)| part.number == number);
        match known.map_or_else(|| open(&path), Ok) {
            Ok((part, header)) => {
                check_place(&path, &header, number, parts)?;
                assembly.add(Part { number, ..part }, header)?;
            }
            Err(Error::Missing { .. }) => split.missing.push(part_name(&path, number, parts)),
            Err(error) => return Err(error),
        }
    }
    assembly.finish(Some(split))
}

/// Holds a part's name against its header.
fn check_place(path: &Path, header: &Header, named: u32, named_parts: u32) -> Result<(), Error> {
    let (number, parts) = place(path, &header.metadata)?.unwrap_or((1, 1));
    if (number, parts) == (named, named_parts) {
        return Ok(());
    }
    Err(Error::PartMisnamed {
        file: shown(path),
        named,
        named_parts,
        number,
        parts,
    })
}
