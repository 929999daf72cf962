//! Quantizations as people and llama.cpp name them: `Q4_K_M`, `Q8_0`, `F16`.

use std::fmt;

use serde::{Serialize, Serializer};
use twospeed_gguf::TensorType;

/// What llama.cpp's quantizer can make: a name, its `llama_ftype`, and the type of most tensors.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileType(u32);

/// One line of the table: name, `llama_ftype`, the type that most matrices get, and whether the
/// engine refuses to make it without an importance matrix.
type Row = (&'static str, u32, TensorType, bool);

/// Sources: llama.cpp `llama.h` (`llama_ftype`), `llama-quant.cpp` (`llama_ftype_get_default_type`,
/// `tensor_requires_imatrix`). Listed from large to small.
const TABLE: [Row; 36] = [
    ("F32", 0, TensorType::F32, false),
    ("BF16", 32, TensorType::Bf16, false),
    ("F16", 1, TensorType::F16, false),
    ("Q8_0", 7, TensorType::Q8_0, false),
    ("Q6_K", 18, TensorType::Q6K, false),
    ("Q5_1", 9, TensorType::Q5_1, false),
    ("Q5_K_M", 17, TensorType::Q5K, false),
    ("Q5_K_S", 16, TensorType::Q5K, false),
    ("Q5_0", 8, TensorType::Q5_0, false),
    ("Q4_1", 3, TensorType::Q4_1, false),
    ("Q4_K_M", 15, TensorType::Q4K, false),
    ("Q4_K_S", 14, TensorType::Q4K, false),
    ("Q4_0", 2, TensorType::Q4_0, false),
    ("IQ4_NL", 25, TensorType::Iq4Nl, false),
    ("IQ4_XS", 30, TensorType::Iq4Xs, false),
    ("MXFP4_MOE", 38, TensorType::Mxfp4, false),
    ("Q3_K_L", 13, TensorType::Q3K, false),
    ("Q3_K_M", 12, TensorType::Q3K, false),
    ("Q3_K_S", 11, TensorType::Q3K, false),
    ("IQ3_M", 27, TensorType::Iq3S, false),
    ("IQ3_S", 26, TensorType::Iq3S, false),
    ("IQ3_XS", 22, TensorType::Iq3S, true),
    ("IQ3_XXS", 23, TensorType::Iq3Xxs, true),
    ("Q2_K", 10, TensorType::Q2K, false),
    ("Q2_K_S", 21, TensorType::Q2K, true),
    ("IQ2_M", 29, TensorType::Iq2S, true),
    ("IQ2_S", 28, TensorType::Iq2Xs, true),
    ("IQ2_XS", 20, TensorType::Iq2Xs, true),
    ("IQ2_XXS", 19, TensorType::Iq2Xxs, true),
    ("Q2_0", 41, TensorType::Q2_0, false),
    ("TQ2_0", 37, TensorType::Tq2_0, false),
    ("TQ1_0", 36, TensorType::Tq1_0, false),
    ("IQ1_M", 31, TensorType::Iq1M, true),
    ("IQ1_S", 24, TensorType::Iq1S, true),
    ("Q1_0", 40, TensorType::Q1_0, false),
    ("NVFP4", 39, TensorType::Nvfp4, false),
];

/// Names that llama.cpp's own tool takes for another.
const ALSO: [(&str, FileType); 5] = [
    ("Q5_K", FileType::Q5_K_M),
    ("Q4_K", FileType::Q4_K_M),
    ("Q3_K", FileType(12)),
    ("FP16", FileType::F16),
    ("FP32", FileType(0)),
];

/// The one quantization with a name that llama.cpp reads and does not make.
const NVFP4: u32 = 39;

/// Why a name stands for nothing that can be made here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileTypeError {
    /// Nobody calls a quantization so.
    #[error("There is no quantization {name}; the nearest is {nearest}. Known are: {known}.", known = FileType::names())]
    Unknown {
        /// As it was given, safe to show.
        name: String,
        /// The name that comes nearest.
        nearest: &'static str,
    },
    /// The engine makes it only with an importance matrix.
    #[error(
        "{name} needs an importance matrix, which is measured on sample text; without one the result would be useless. Take {instead} instead, or find a file that was made with one."
    )]
    NeedsMatrix {
        /// Its name.
        name: &'static str,
        /// The nearest in size that needs none.
        instead: &'static str,
    },
    /// The engine reads it and cannot make it.
    #[error("The engine can run {0} but cannot make it. Take Q4_K_M instead.")]
    NotMade(&'static str),
}

#[allow(non_upper_case_globals)]
impl FileType {
    /// Half precision throughout.
    pub const F16: Self = Self(1);
    /// Q8_0 throughout.
    pub const Q8_0: Self = Self(7);
    /// Q6_K throughout.
    pub const Q6_K: Self = Self(18);
    /// Q5_K, with Q6_K where it matters most.
    pub const Q5_K_M: Self = Self(17);
    /// Q4_K, with Q6_K where it matters most.
    pub const Q4_K_M: Self = Self(15);
    /// Q4_0, with Q6_K for the output matrix.
    pub const Q4_0: Self = Self(2);

    /// The quantization of this name, in capitals or not.
    ///
    /// Errors: one that does not exist, and one that cannot be made here.
    pub fn named(name: &str) -> Result<Self, FileTypeError> {
        let wanted = name.trim().to_ascii_uppercase();
        let also = ALSO.iter().find(|(other, _)| *other == wanted);
        let found = match also {
            Some((_, file_type)) => *file_type,
            None => match TABLE.iter().find(|row| row.0 == wanted) {
                Some(row) => Self(row.1),
                None => return Err(unknown(name, &wanted)),
            },
        };
        if found.needs_matrix() {
            return Err(FileTypeError::NeedsMatrix {
                name: found.name(),
                instead: match found.name() {
                    "IQ3_XS" | "IQ3_XXS" => "Q3_K_S",
                    _ => "Q2_K",
                },
            });
        }
        if found.0 == NVFP4 {
            return Err(FileTypeError::NotMade(found.name()));
        }
        Ok(found)
    }

    /// Every quantization that can be made here, from large to small.
    pub fn makeable() -> impl Iterator<Item = Self> {
        TABLE
            .iter()
            .filter(|row| !row.3 && row.1 != NVFP4)
            .map(|row| Self(row.1))
    }

    /// Its name: `Q4_K_M`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// `general.file_type`: llama.cpp's `llama_ftype`.
    #[must_use]
    pub fn id(self) -> u32 {
        self.0
    }

    /// The type that most matrices get.
    #[must_use]
    pub fn plain(self) -> TensorType {
        self.row().2
    }

    /// Whether weights are stored as numbers of their own and not in blocks.
    pub(crate) fn is_float(self) -> bool {
        matches!(self.name(), "F32" | "BF16" | "F16")
    }

    fn needs_matrix(self) -> bool {
        self.row().3
    }

    fn row(self) -> &'static Row {
        TABLE
            .iter()
            .find(|row| row.1 == self.0)
            .expect("BUG: a file type is made of the table's ids")
    }

    fn names() -> String {
        let names: Vec<_> = Self::makeable().map(Self::name).collect();
        names.join(", ")
    }
}

fn unknown(name: &str, wanted: &str) -> FileTypeError {
    let nearest = FileType::makeable()
        .map(FileType::name)
        .min_by_key(|other| strsim::damerau_levenshtein(wanted, other))
        .expect("BUG: the table is not empty");
    FileTypeError::Unknown {
        name: crate::display::shortened(&crate::display::shown(name), 40),
        nearest,
    }
}

impl fmt::Debug for FileType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for FileType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl std::str::FromStr for FileType {
    type Err = FileTypeError;

    fn from_str(name: &str) -> Result<Self, FileTypeError> {
        Self::named(name)
    }
}

impl Serialize for FileType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_in_any_case_and_short_as_llama_cpp_takes_them() {
        for (name, known) in [
            ("q4_k_m", "Q4_K_M"),
            ("Q4_K", "Q4_K_M"),
            (" Q8_0 ", "Q8_0"),
            ("fp16", "F16"),
        ] {
            assert_eq!(FileType::named(name).unwrap().name(), known);
        }
    }

    #[test]
    fn a_wrong_name_is_told_its_nearest() {
        let told = |name: &str| FileType::named(name).unwrap_err().to_string();
        assert!(
            told("Q4_M_K").starts_with("There is no quantization Q4_M_K; the nearest is Q4_K_M.")
        );
        assert!(told("Q8").contains("nearest is Q8_0."));
        assert!(told("q5-k-m").contains("nearest is Q5_K_M."));
    }

    #[test]
    fn what_needs_an_importance_matrix_is_refused_with_another_to_take() {
        for name in ["IQ1_S", "IQ2_XXS", "IQ2_M", "Q2_K_S", "IQ3_XXS"] {
            let error = FileType::named(name).unwrap_err();
            assert!(matches!(error, FileTypeError::NeedsMatrix { .. }), "{name}");
            assert!(error.to_string().contains("Take Q"), "{error}");
        }
        assert!(FileType::named("NVFP4").is_err());
    }

    #[test]
    fn the_numbers_are_llama_cpps_and_none_comes_twice() {
        // From `enum llama_ftype` of build 11434.
        for (name, id) in [
            ("Q4_0", 2),
            ("Q8_0", 7),
            ("Q4_K_M", 15),
            ("Q6_K", 18),
            ("IQ4_XS", 30),
            ("BF16", 32),
        ] {
            assert_eq!(FileType::named(name).unwrap().id(), id);
        }
        let mut ids: Vec<_> = TABLE.iter().map(|row| row.1).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), TABLE.len());
    }
}
