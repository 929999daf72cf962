//! The worker of a run: started when it is needed, kept while it lives, replaced when it died.

use twospeed_engine::protocol::{
    AnchorRequest, Event, Failure, Hello, Load, Loaded, PageCache, Request,
};
use twospeed_engine::variants::GiveUp;
use twospeed_engine::{Doing, Engine, How, Incoming, SendError, Session, StartError, WorkerEnd};

use crate::machine::Machine;
use crate::plan::PlannedTest;
use crate::record::{Recorder, RecorderError};
use crate::stop::Stop;
use crate::variants::{NotStarted, Variants, Verdict};

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
    /// The worker runs another CPU variant than the samples before were made with.
    OtherVariant { before: String, now: String },
    /// Something could not be stored.
    NotKept(RecorderError),
}

impl From<RecorderError> for Trouble {
    fn from(error: RecorderError) -> Self {
        Self::NotKept(error)
    }
}

impl From<NotStarted> for Trouble {
    fn from(reason: NotStarted) -> Self {
        match reason {
            NotStarted::NoEngine(error) => Self::NoEngine(error),
            NotStarted::NotKept(error) => Self::NotKept(error),
        }
    }
}

pub(super) struct Worker<'a> {
    engine: &'a dyn Engine,
    variants: Variants<'a>,
    stop: &'a Stop,
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
            variants: Variants::new(recorder, machine),
            stop,
            hello: None,
            alive: None,
            cancelled: false,
        }
    }

    pub(super) fn set_aside(&self) -> &[String] {
        self.variants.set_aside()
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
        let session = tokio::select! {
            biased;
            () = self.stop.asked_now() => return Err(Trouble::Cancelled),
            session = self.variants.start(self.engine, test.variant.as_deref()) => session?,
        };
        let hello = session.hello().clone();
        self.hello = Some(hello.clone());
        self.alive = Some(Alive {
            session,
            variant: test.variant.clone(),
            loaded: None,
        });
        Ok((hello, true))
    }

    /// Judges a death; a variant at fault is set aside, here and for later runs.
    pub(super) async fn judge(&mut self, end: &WorkerEnd) -> Result<Verdict, RecorderError> {
        match &self.hello {
            Some(hello) => self.variants.judge(hello, end).await,
            None => Ok(Verdict::GiveUp(GiveUp::NotTheVariant)),
        }
    }

    /// Loads the model of `test`, unless it is loaded already.
    pub(super) async fn load(
        &mut self,
        test: &PlannedTest,
        page_cache: PageCache,
        progress: impl FnMut(f32),
    ) -> Result<Loaded, Trouble> {
        if let Some((held, loaded)) = self.alive.as_ref().and_then(|alive| alive.loaded.as_ref())
            && held.shares_load(test)
        {
            return Ok(loaded.clone());
        }
        self.load_anew(test, page_cache, progress).await
    }

    /// Loads the model of `test`, even if it is loaded already.
    pub(super) async fn load_anew(
        &mut self,
        test: &PlannedTest,
        page_cache: PageCache,
        mut progress: impl FnMut(f32),
    ) -> Result<Loaded, Trouble> {
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

    /// Runs the drift anchor; `None` when the worker cannot, or is no more.
    pub(super) async fn anchor(&mut self, n_threads: u32) -> Result<Option<u64>, Trouble> {
        if self.alive.is_none() {
            return Ok(None);
        }
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
