//! Tells model files apart by their content.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::model::{Model, Part};
use crate::text::shown;

/// Bytes of one sample.
const CHUNK: u64 = 64 * 1024;

/// Samples of a model's data, spread over its parts.
const SAMPLES: u64 = 48;

/// The fewest samples of one part.
const LEAST_SAMPLES: u64 = 3;

/// A name for the model's content, in 64 hexadecimal digits: sha256 over the number of parts, and
/// of each part its size, its header and samples of its data at even distances, the first and the last bytes
/// among them. Where the files lie and how they are called does not matter; that a part is missing
/// or cut does.
///
/// It tells downloads, quantizations and fine-tunes apart, and reads some MB for that; it does not
/// notice a change between the samples. Errors: [`Error::Unreadable`], and [`Error::Changed`] when a
/// file is not as it was when `model` was read.
pub fn fingerprint(model: &Model) -> Result<String, Error> {
    let mut hash = Sha256::new();
    hash.update(b"twospeed.fingerprint/1");
    let parts = model.split.as_ref().map_or(1, |split| split.parts);
    hash.update(parts.to_le_bytes());
    let samples = (SAMPLES / u64::from(parts)).max(LEAST_SAMPLES);
    for part in &model.parts {
        hash.update(part.number.to_le_bytes());
        hash.update(part.bytes.to_le_bytes());
        add_part(&mut hash, part, samples).map_err(|reason| match reason.kind() {
            io::ErrorKind::UnexpectedEof => Error::Changed {
                file: shown(&part.path),
            },
            _ => Error::Unreadable {
                file: shown(&part.path),
                reason,
            },
        })?;
    }
    Ok(hash
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

fn add_part(hash: &mut Sha256, part: &Part, samples: u64) -> io::Result<()> {
    let mut file = File::open(&part.path)?;
    if file.metadata()?.len() != part.bytes {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let header = part.header_bytes.min(part.bytes);
    add_bytes(hash, &mut file, header)?;
    for (start, length) in sample_ranges(header, part.bytes, samples) {
        file.seek(SeekFrom::Start(start))?;
        add_bytes(hash, &mut file, length)?;
    }
    Ok(())
}

fn add_bytes(hash: &mut Sha256, file: &mut File, mut left: u64) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK as usize];
    while left > 0 {
        let step = &mut buffer[..left.min(CHUNK) as usize];
        file.read_exact(step)?;
        hash.update(&*step);
        left -= step.len() as u64;
    }
    Ok(())
}

/// Start and length of the samples between `from` and `to`: everything where that is little.
fn sample_ranges(from: u64, to: u64, samples: u64) -> Vec<(u64, u64)> {
    let length = to - from;
    if length <= samples * CHUNK {
        return vec![(from, length)];
    }
    // The last sample ends at the end.
    let room = u128::from(length - CHUNK);
    let start = |index: u64| from + (room * u128::from(index) / u128::from(samples - 1)) as u64;
    (0..samples).map(|index| (start(index), CHUNK)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_start_at_the_data_and_end_with_it() {
        let ranges = sample_ranges(1000, 1 << 30, 48);
        assert_eq!(ranges.len(), 48);
        assert_eq!(ranges[0], (1000, CHUNK));
        assert_eq!(ranges[47], ((1 << 30) - CHUNK, CHUNK));
        assert!(
            ranges.windows(2).all(|pair| pair[0].0 + CHUNK <= pair[1].0),
            "they do not overlap"
        );
    }

    #[test]
    fn of_little_data_every_byte_counts() {
        assert_eq!(sample_ranges(10, 1000, 3), [(10, 990)]);
        assert_eq!(sample_ranges(10, 10, 3), [(10, 0)]);
        assert_eq!(
            sample_ranges(0, u64::MAX, 3).len(),
            3,
            "a size near 2^64 does not overflow"
        );
    }
}
