//! `--profile tuned`: the settings that were found fastest for a model on this machine.

use std::str::FromStr;

use twospeed_measure::platform;
use twospeed_measure::tune::{Choice, NotATarget, Target};
use twospeed_workbench::Subject;
use twospeed_workbench::tune::profile;

use super::output::short_name;
use crate::Failure;
use crate::context::Context;
use crate::say::say;

/// A profile as it is named on the command line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Profile {
    /// What was to be fast; `None` = whatever was tuned last.
    target: Option<Target>,
}

/// A text that names no profile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoProfile {
    /// Another name.
    #[error("the only profile is tuned; write tuned, tuned:prefill, tuned:decode or tuned:512,128")]
    Unknown,
    /// Another target.
    #[error(transparent)]
    Target(#[from] NotATarget),
}

impl FromStr for Profile {
    type Err = NoProfile;

    fn from_str(text: &str) -> Result<Self, NoProfile> {
        match text.strip_prefix("tuned") {
            Some("") => Ok(Self { target: None }),
            Some(rest) => match rest.strip_prefix(':') {
                Some(target) => Ok(Self {
                    target: Some(target.parse()?),
                }),
                None => Err(NoProfile::Unknown),
            },
            None => Err(NoProfile::Unknown),
        }
    }
}

impl Profile {
    /// The settings for each model, by fingerprint.
    ///
    /// Errors: a model was never tuned here.
    pub async fn of(
        &self,
        context: &Context,
        subjects: &[Subject],
    ) -> Result<Vec<(String, Choice)>, Failure> {
        let history = context.open_history().await?;
        let machine = platform::machine();
        let mut choices = Vec::new();
        for Subject { measured, .. } in subjects {
            let tuned = profile(&history, &machine, measured, self.target)
                .await
                .map_err(Failure::of)?
                .ok_or_else(|| self.never(&short_name(measured)))?;
            if tuned.gain.is_none() {
                say(format!(
                    "{}: the defaults were found fastest here and are measured.",
                    short_name(measured)
                ));
            }
            choices.push((measured.fingerprint.clone(), tuned.choice));
        }
        history.close().await;
        Ok(choices)
    }

    fn never(&self, model: &str) -> Failure {
        let (purpose, flag) = match self.target {
            Some(target) => (format!(" for {target}"), format!(" --for {target}")),
            None => Default::default(),
        };
        Failure::Failed(format!(
            "{model} was never tuned on this machine{purpose}. Run twospeed tune -m FILE{flag} first."
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_tuned_for_something_or_for_what_was_tuned_last() {
        let target = |text: &str| text.parse::<Profile>().map(|profile| profile.target);
        assert_eq!(target("tuned"), Ok(None));
        assert_eq!(target("tuned:decode"), Ok(Some(Target::Decode)));
        assert_eq!(target("tuned:512,128"), Ok(Some(Target::BENCH)));
        for text in ["", "best", "tuned:", "tuneddecode", "tuned:512"] {
            assert!(target(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_model_that_was_never_tuned_is_said_with_the_command_that_does() {
        let profile = "tuned:512,128".parse::<Profile>().unwrap();
        let failure = profile.never("A Q4_0");
        assert_eq!(
            failure.sentence().unwrap(),
            "A Q4_0 was never tuned on this machine for mix:512,128. Run twospeed tune -m FILE --for mix:512,128 first."
        );
    }
}
