//! Starting the best CPU variant that does not die on this machine.
//!
//! The policy is [`twospeed_engine::variants`]; here is what remembers: variants that died, in this
//! program or before, are asked of the [`Recorder`] and told to it.

use twospeed_engine::protocol::{EngineBuild, Hello};
use twospeed_engine::variants::{self, GiveUp, Next};
use twospeed_engine::{Engine, Session, Start, StartError, WorkerEnd};

use crate::machine::Machine;
use crate::record::{Recorder, RecorderError};

/// The CPU variants that are not to be run on this machine.
pub struct Variants<'a> {
    recorder: &'a dyn Recorder,
    machine: &'a Machine,
    /// Died here, now or in a run before.
    set_aside: Vec<String>,
    /// The build that the recorder was asked for.
    asked_for: Option<EngineBuild>,
}

/// Why no worker was started.
#[derive(Debug, thiserror::Error)]
pub enum NotStarted {
    /// There is no engine.
    #[error(transparent)]
    NoEngine(#[from] StartError),
    /// It could not be asked which variants died.
    #[error(transparent)]
    NotKept(#[from] RecorderError),
}

/// What a death means for the CPU variant that ran.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The variant was at fault and is set aside; the next best is worth a try.
    TryNextVariant,
    /// Another variant would not help.
    GiveUp(GiveUp),
}

impl<'a> Variants<'a> {
    /// Nothing is known yet: which build runs is known only from a hello.
    pub fn new(recorder: &'a dyn Recorder, machine: &'a Machine) -> Self {
        Self {
            recorder,
            machine,
            set_aside: Vec::new(),
            asked_for: None,
        }
    }

    /// Those that are set aside.
    pub fn set_aside(&self) -> &[String] {
        &self.set_aside
    }

    /// Starts the variant that was asked for by name, or the best that is not set aside.
    pub async fn start(
        &mut self,
        engine: &dyn Engine,
        wanted: Option<&str>,
    ) -> Result<Session, NotStarted> {
        loop {
            let start = Start {
                variant: wanted.map(str::to_owned),
                set_aside: self.set_aside.clone(),
            };
            let session = engine.start(&start).await?;
            let news = self.learn(session.hello()).await?;
            if !news || wanted.is_some() || !self.is_to_be_replaced(session.hello()) {
                return Ok(session);
            }
            session.stop().await;
        }
    }

    /// Asks once for each build which variants died before; `true` when there are new ones.
    async fn learn(&mut self, hello: &Hello) -> Result<bool, RecorderError> {
        if self.asked_for.as_ref() == Some(&hello.engine) {
            return Ok(false);
        }
        let known = self
            .recorder
            .variants_set_aside(self.machine, &hello.engine)
            .await?;
        self.asked_for = Some(hello.engine.clone());
        let before = self.set_aside.len();
        for variant in known {
            if !self.set_aside.contains(&variant) {
                self.set_aside.push(variant);
            }
        }
        Ok(self.set_aside.len() > before)
    }

    /// Whether the variant that started is set aside and there is another.
    fn is_to_be_replaced(&self, hello: &Hello) -> bool {
        let is_aside = |name: &String| self.set_aside.contains(name);
        is_aside(&hello.variant.name)
            && hello
                .variants
                .iter()
                .any(|variant| variant.score > 0 && !is_aside(&variant.name))
    }

    /// Judges the death of a worker that said `hello`; a variant at fault is set aside, here and
    /// for later runs.
    pub async fn judge(
        &mut self,
        hello: &Hello,
        end: &WorkerEnd,
    ) -> Result<Verdict, RecorderError> {
        let ran = &hello.variant.name;
        match variants::next(&end.how, Some(ran), &hello.variants, &self.set_aside) {
            Next::GiveUp(reason) => Ok(Verdict::GiveUp(reason)),
            Next::TryNext(_) => {
                if !self.set_aside.contains(ran) {
                    self.set_aside.push(ran.clone());
                }
                self.recorder
                    .set_variant_aside(self.machine, &hello.engine, ran, &end.sentence(None))
                    .await?;
                Ok(Verdict::TryNextVariant)
            }
        }
    }
}
