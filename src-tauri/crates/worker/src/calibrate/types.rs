//! The types of weights, and which of them the engine multiplies with.

use llama_cpp_sys_2 as sys;
use twospeed_gguf::TensorType;

/// The type that ggml calls so, in capitals or not.
pub fn named(name: &str) -> Option<TensorType> {
    TensorType::ALL
        .iter()
        .copied()
        .find(|tensor_type| tensor_type.name().eq_ignore_ascii_case(name))
}

/// Whether the engine has a product for matrices of this type. ggml does not say so itself: it
/// would call a function that is not there. Left out are the integers, double precision, and the
/// two types that only the other factor of a product is brought into.
pub fn is_multiplied(tensor_type: TensorType) -> bool {
    use TensorType as T;
    !matches!(
        tensor_type,
        T::I8 | T::I16 | T::I32 | T::I64 | T::F64 | T::Q8_1 | T::Q8K
    )
}

/// ggml's number of a type.
pub fn number(tensor_type: TensorType) -> sys::ggml_type {
    tensor_type.id() as sys::ggml_type
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend;

    #[test]
    fn every_type_is_found_by_the_name_that_ggml_gives_it() {
        for tensor_type in TensorType::ALL {
            // SAFETY: a constant C string of ggml.
            let name = unsafe { backend::text(sys::ggml_type_name(number(*tensor_type))) };
            assert_eq!(named(&name), Some(*tensor_type), "{name}");
        }
        assert_eq!(
            named("q4_k"),
            Some(TensorType::Q4K),
            "however it is written"
        );
        assert_eq!(named("q4_2"), None, "withdrawn");
    }
}
