//! Names made of content: the same words give the same name, here and on every other machine.

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use twospeed_measure::machine::Machine;
use uuid::Uuid;

use crate::test::Told;

/// What stands before every name of something that only another tool told of.
const FOREIGN: &str = "foreign:";

fn digest(words: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for word in words {
        hash.update(word.as_bytes());
        hash.update([0]);
    }
    hash.finalize().into()
}

/// A UUIDv7 of a time and of words instead of chance.
pub(super) fn id(at: Option<Timestamp>, words: &[&str]) -> Uuid {
    let hash = digest(words);
    let mut bytes = [0; 10];
    bytes.copy_from_slice(&hash[..10]);
    let millis = at.map_or(0, |at| u64::try_from(at.as_millisecond()).unwrap_or(0));
    uuid::Builder::from_unix_timestamp_millis(millis, &bytes).into_uuid()
}

/// A name for a model or a machine.
pub(super) fn name(words: &[&str]) -> String {
    let hash = digest(words);
    let digits: String = hash[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{FOREIGN}{digits}")
}

/// The machine that a row tells of. Where it tells nothing, each run (`run`) has one of its own:
/// nobody knows whether two are the same.
pub(super) fn machine(told: &Told, run: Uuid) -> Machine {
    let cpu = told.cpu_info.as_deref().unwrap_or_default().trim();
    let gpu = told.gpu_info.as_deref().unwrap_or_default().trim();
    let (id, words, name) = match (cpu, gpu) {
        ("", "") => (
            name(&["machine of", &run.to_string()]),
            "Unknown machine",
            None,
        ),
        (cpu, "") => (name(&["machine", cpu, ""]), cpu, None),
        ("", gpu) => (
            name(&["machine", "", gpu]),
            "unknown CPU",
            Some(gpu.to_owned()),
        ),
        (cpu, gpu) => (
            name(&["machine", cpu, gpu]),
            cpu,
            Some(format!("{gpu}, {cpu}")),
        ),
    };
    Machine {
        id,
        name,
        cpu: words.to_owned(),
        physical_cores: None,
        logical_cores: None,
        last_level_cache_bytes: None,
        memory_bytes: None,
        os: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_uuid_of_its_time_and_the_same_for_the_same_words() {
        let at: Timestamp = "2026-11-30T22:11:51Z".parse().unwrap();
        let one = id(Some(at), &["a", "b"]);
        assert_eq!(one, id(Some(at), &["a", "b"]));
        assert_ne!(one, id(Some(at), &["ab", ""]));
        assert_eq!(one.get_version_num(), 7);
        // 2026-11-30T22:11:51Z is 1796076711 s after 1970: in milliseconds 0x1a22ddcc958.
        assert_eq!(
            format!("{:012x}", 1_796_076_711_000_u64),
            one.to_string().replace('-', "")[..12]
        );
    }

    #[test]
    fn machines_are_told_apart_by_what_is_told_of_them() {
        let told = |cpu: &str, gpu: &str| Told {
            cpu_info: Some(cpu.into()),
            gpu_info: Some(gpu.into()),
            ..Told::default()
        };
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let xeon = machine(&told("Xeon", ""), one);
        assert_eq!(xeon, machine(&told("Xeon", ""), other));
        assert_ne!(xeon.id, machine(&told("Xeon", "RTX 4090"), one).id);
        assert_ne!(
            machine(&Told::default(), one).id,
            machine(&Told::default(), other).id
        );
    }
}
