//! Which CPU variant to run after one has died: a policy without a clock, a disk or a process.

use crate::end::How;
use crate::protocol::Variant;

/// What to do after the death of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Set the variant that died aside and go on with this one.
    TryNext(String),
    /// Do not go on.
    GiveUp(GiveUp),
}

/// Why the plan does not go on with another variant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GiveUp {
    /// The death says nothing against the variant: another one would die the same way.
    #[error("Another build of the engine would end the same way.")]
    NotTheVariant,
    /// The variant was not known, since the worker died before it named it.
    #[error(
        "The engine died of an illegal instruction before it said which of its builds it ran. This CPU may be too old for Twospeed."
    )]
    Unnamed,
    /// Every variant that claims to run here has died.
    #[error(
        "Every build of the engine that fits this CPU died of an illegal instruction ({}). The machine announces instructions it does not have: if it is virtual, change its CPU model.",
        tried.join(", ")
    )]
    NoneLeft {
        /// All of them, in the order of `variants`.
        tried: Vec<String>,
    },
}

/// What to do when a worker that ran `ran` ended with `how`.
///
/// Only an illegal instruction speaks against a variant; a crash or a failed check does not, since
/// it would be met again. `variants` is the worker's list, best first; `set_aside` are those that
/// died before on this machine, whether or not they are in the list.
pub fn next(how: &How, ran: Option<&str>, variants: &[Variant], set_aside: &[String]) -> Next {
    if !how.is_illegal_instruction() {
        return Next::GiveUp(GiveUp::NotTheVariant);
    }
    let Some(ran) = ran else {
        return Next::GiveUp(GiveUp::Unnamed);
    };
    let fit = || variants.iter().filter(|variant| variant.score > 0);
    let has_died = |name: &str| name == ran || set_aside.iter().any(|aside| aside == name);
    match fit().find(|variant| !has_died(&variant.name)) {
        Some(variant) => Next::TryNext(variant.name.clone()),
        None => Next::GiveUp(GiveUp::NoneLeft {
            tried: fit().map(|variant| variant.name.clone()).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signal(number: i32, name: &str) -> How {
        How::Signal {
            number,
            name: name.into(),
        }
    }

    fn three() -> Vec<Variant> {
        [("sapphirerapids", 4095), ("icelake", 1023), ("haswell", 63)]
            .map(|(name, score)| Variant {
                name: name.into(),
                score,
            })
            .to_vec()
    }

    fn after_sigill(ran: &str, set_aside: &[&str]) -> Next {
        let set_aside: Vec<String> = set_aside.iter().map(|s| (*s).to_owned()).collect();
        next(&signal(4, "SIGILL"), Some(ran), &three(), &set_aside)
    }

    #[test]
    fn a_variant_that_met_an_illegal_instruction_is_followed_by_the_next_best() {
        assert_eq!(
            after_sigill("sapphirerapids", &[]),
            Next::TryNext("icelake".into())
        );
        assert_eq!(
            after_sigill("icelake", &["sapphirerapids"]),
            Next::TryNext("haswell".into())
        );
    }

    #[test]
    fn a_better_variant_that_was_never_tried_comes_before_a_lesser_one() {
        // The person asked for haswell by name.
        assert_eq!(
            after_sigill("haswell", &[]),
            Next::TryNext("sapphirerapids".into())
        );
    }

    #[test]
    fn when_all_have_died_the_plan_gives_up_and_names_them() {
        let Next::GiveUp(reason) = after_sigill("haswell", &["icelake", "sapphirerapids"]) else {
            panic!("there is nothing left to try");
        };
        assert!(
            reason
                .to_string()
                .contains("(sapphirerapids, icelake, haswell)"),
            "{reason}"
        );
    }

    #[test]
    fn no_other_death_speaks_against_a_variant() {
        for how in [
            signal(11, "SIGSEGV"),
            signal(6, "SIGABRT"),
            signal(9, "SIGKILL"),
            How::OutOfMemory,
            How::Exited { code: 1 },
            How::Killed,
        ] {
            assert_eq!(
                next(&how, Some("sapphirerapids"), &three(), &[]),
                Next::GiveUp(GiveUp::NotTheVariant),
                "{how:?}"
            );
        }
    }

    #[test]
    fn a_variant_that_cannot_run_is_never_tried() {
        let mut variants = three();
        variants[1].score = 0;
        assert_eq!(
            next(&signal(4, "SIGILL"), Some("sapphirerapids"), &variants, &[]),
            Next::TryNext("haswell".into())
        );
    }

    #[test]
    fn a_death_before_the_hello_names_no_variant_to_set_aside() {
        assert_eq!(
            next(&signal(4, "SIGILL"), None, &[], &[]),
            Next::GiveUp(GiveUp::Unnamed)
        );
    }
}
