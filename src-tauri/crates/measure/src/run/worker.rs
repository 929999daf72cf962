//! The worker of a run: started when it is needed, kept while it lives, replaced when it died.

use twospeed_engine::protocol::{
    AnchorRequest, EngineBuild, Event, Failure, Hello, Load, Loaded, PageCache, Request,
};
use twospeed_engine::variants::{self, GiveUp, Next};
use twospeed_engine::{
    Doing, Engine, How, Incoming, SendError, Session, Start, StartError, WorkerEnd,
};

use crate::machine::Machine;
use crate::plan::PlannedTest;
use crate::record::{Recorder, RecorderError};
use crate::stop::Stop;

/// Why a step did not come to its end.
#[derive(Debug)]
pub(super) enum Trouble {
    /// There is no worker.
    NoEngine(StartError),
    /// The worker died.
    Died(WorkerEnd),
    /// The worker lives and said no.
    Failed(Failure),
    /// The person stopped it.
    Cancelled,
    /// Something could not be stored.
    NotKept(RecorderError),
}

impl From<RecorderError> for Trouble {
    fn from(error: RecorderError) -> Self {
        Self::NotKept(error)
    }
}

/// What a death means for the CPU variant that ran.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The variant was at fault and is set aside; the next best is worth a try.
    TryNextVariant,
    /// Another variant would not help.
    GiveUp(GiveUp),
}

pub(super) struct Worker<'a> {
    engine: &'a dyn Engine,
    recorder: &'a dyn Recorder,
    machine: &'a Machine,
    stop: &'a Stop,
    /// CPU variants that died on this machine, here or in a run before.
    set_aside: Vec<String>,
    /// The build that `set_aside` was asked for.
    asked_for: Option<EngineBuild>,
    /// The last hello, kept for judging a death.
    hello: Option<Hello>,
    alive: Option<Alive>,
    /// A cancel was sent to the request that is served.
    cancelled: bool,
}

struct Alive {
    session: Session,
    /// The variant that was asked for by name.
    variant: Option<String>,
    /// What is loaded, for which test.
    loaded: Option<(PlannedTest, Loaded)>,
}

impl<'a> Worker<'a> {
    pub(super) fn new(
        engine: &'a dyn Engine,
        recorder: &'a dyn Recorder,
        machine: &'a Machine,
        stop: &'a Stop,
    ) -> Self {
        Self {
            engine,
            recorder,
            machine,
            stop,
            set_aside: Vec::new(),
            asked_for: None,
            hello: None,
            alive: None,
            cancelled: false,
        }
    }

    pub(super) fn set_aside(&self) -> &[String] {
        &self.set_aside
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.alive.as_ref()?.session.pid()
    }

    /// Sees to it that a worker runs the variant that `test` wants; `true` when it is a new one.
    pub(super) async fn ensure(&mut self, test: &PlannedTest) -> Result<(Hello, bool), Trouble> {
        if let Some(alive) = &self.alive
            && alive.variant == test.variant
        {
            return Ok((alive.session.hello().clone(), false));
        }
        self.end().await;
        loop {
            let session = self.start(test).await?;
            let hello = session.hello().clone();
            self.hello = Some(hello.clone());
            if self.learn(&hello).await? && self.is_to_be_replaced(test, &hello) {
                session.stop().await;
                continue;
            }
            self.alive = Some(Alive {
                session,
                variant: test.variant.clone(),
                loaded: None,
            });
            return Ok((hello, true));
        }
    }

    async fn start(&self, test: &PlannedTest) -> Result<Session, Trouble> {
        let start = Start {
            variant: test.variant.clone(),
            set_aside: self.set_aside.clone(),
        };
        tokio::select! {
            biased;
            () = self.stop.asked_now() => Err(Trouble::Cancelled),
            session = self.engine.start(&start) => session.map_err(Trouble::NoEngine),
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
    fn is_to_be_replaced(&self, test: &PlannedTest, hello: &Hello) -> bool {
        let is_aside = |name: &String| self.set_aside.contains(name);
        test.variant.is_none()
            && is_aside(&hello.variant.name)
            && hello
                .variants
                .iter()
                .any(|variant| variant.score > 0 && !is_aside(&variant.name))
    }

    /// Judges a death; a variant at fault is set aside, here and for later runs.
    pub(super) async fn judge(&mut self, end: &WorkerEnd) -> Result<Verdict, RecorderError> {
        let Some(hello) = self.hello.clone() else {
            return Ok(Verdict::GiveUp(GiveUp::NotTheVariant));
        };
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

    /// Loads the model of `test`, unless it is loaded already.
    pub(super) async fn load(
        &mut self,
        test: &PlannedTest,
        page_cache: PageCache,
        mut progress: impl FnMut(f32),
    ) -> Result<Loaded, Trouble> {
        if let Some((held, loaded)) = self.alive.as_ref().and_then(|alive| alive.loaded.as_ref())
            && held.shares_load(test)
        {
            return Ok(loaded.clone());
        }
        if let Some(alive) = &mut self.alive {
            // Whatever comes of this request, the model before is freed.
            alive.loaded = None;
        }
        self.send(Request::Load(Load {
            model: test.model.path.clone(),
            settings: test.settings.clone(),
            page_cache,
        }));
        loop {
            match self.hear().await? {
                Event::LoadProgress { fraction } => progress(fraction),
                Event::Loaded(loaded) => {
                    if let Some(alive) = &mut self.alive {
                        alive.loaded = Some((test.clone(), loaded.clone()));
                    }
                    return Ok(loaded);
                }
                _ => {}
            }
        }
    }

    /// Runs the drift anchor; `None` when the worker cannot.
    pub(super) async fn anchor(&mut self, n_threads: u32) -> Result<Option<u64>, Trouble> {
        self.send(Request::Anchor(AnchorRequest { n_threads }));
        loop {
            match self.hear().await {
                Ok(Event::Anchor { ns }) => return Ok(Some(ns)),
                Ok(_) => {}
                Err(Trouble::Failed(_)) => return Ok(None),
                Err(trouble) => return Err(trouble),
            }
        }
    }

    /// Hands a request over. When the worker is no more, [`Worker::hear`] says so.
    ///
    /// A cancel is for one request: one that closed in spite of it (the anchor does) leaves the
    /// next to be cancelled as well.
    pub(super) fn send(&mut self, request: Request) {
        if Doing::after(&request).is_some() {
            self.cancelled = false;
        }
        if let Some(alive) = &self.alive {
            let sent = alive.session.send(request);
            debug_assert_ne!(sent, Err(SendError::Busy), "BUG: one request at a time");
        }
    }

    /// The next event of the request that is served; its failure, its cancelling and the worker's
    /// death are troubles. Between two events nothing here wakes up.
    pub(super) async fn hear(&mut self) -> Result<Event, Trouble> {
        let alive = self.alive.as_mut();
        let alive = alive.expect("BUG: a worker is there from `ensure` until it is heard to end");
        let incoming = loop {
            tokio::select! {
                biased;
                () = self.stop.asked_now(), if !self.cancelled => {
                    self.cancelled = true;
                    alive.session.cancel();
                }
                incoming = alive.session.next() => break incoming,
            }
        };
        match incoming {
            Incoming::Event(Event::Failed(_)) if self.cancelled => Err(Trouble::Cancelled),
            Incoming::Event(Event::Failed(failure)) => Err(Trouble::Failed(failure)),
            Incoming::Event(Event::Cancelled) => Err(Trouble::Cancelled),
            Incoming::Event(event) => Ok(event),
            Incoming::Ended(end) => {
                self.alive = None;
                if self.cancelled && end.how == How::Killed {
                    return Err(Trouble::Cancelled);
                }
                Err(Trouble::Died(end))
            }
        }
    }

    /// Lets the worker go.
    pub(super) async fn end(&mut self) {
        if let Some(alive) = self.alive.take() {
            alive.session.stop().await;
        }
    }
}
