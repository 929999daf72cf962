//! The real text that comes with the program; `texts/README.md` tells where it is from.

/// Half a megabyte of English prose, in the public domain: the same on every machine.
pub fn bundled() -> &'static str {
    include_str!("../texts/moby-dick.txt")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_same_to_the_byte_wherever_it_is_built() {
        // Counted with wc: a checkout that changes line ends would change every figure of quality.
        let text = bundled();
        assert_eq!(text.len(), 488_970);
        assert_eq!(text.matches('\n').count(), 1_991);
        assert!(!text.contains('\r'));
        assert!(text.starts_with("CHAPTER 1. Loomings.\n\nCall me Ishmael."));
    }
}
