//! What the window does, without a window: one method for each command of
//! [`for_each_command`](crate::for_each_command), and what happens unasked.
//!
//! A face makes an [`App`] and calls its methods; it brings an engine and a [`Desk`]. Nothing here
//! waits for the history or for a scan before the first view is there.

mod calibration;
mod catalogue;
mod cautions;
mod compare;
mod environment;
mod estimate;
mod eta;
mod explain;
mod export;
mod facts;
mod figure;
mod folders;
mod found;
mod history;
mod hub;
mod jobs;
mod machine;
mod measure;
mod measured;
mod models;
mod paths;
mod plan;
mod planning;
mod quiet;
mod readings;
mod results;
#[cfg(test)]
mod results_fixture;
mod resume;
mod run;
mod run_log;
mod run_page;
mod run_teller;
mod settings;
mod tuning;
mod twin;
mod typed;

use std::path::PathBuf;
use std::sync::{Arc, Weak};

use tokio::runtime::Handle;
use twospeed_engine::Engine;
use twospeed_measure::machine::Machine;
use twospeed_measure::platform;

pub use environment::{Environment, Variable};
pub use quiet::{Quiet, Timed};

use crate::Problem;
use crate::desk::Desk;
use crate::frame::AppEvent;

/// Whom a command tells what happens while it goes on.
pub type Tell<M> = Arc<dyn Fn(M) + Send + Sync>;

/// What an app is made with.
pub struct AppOptions {
    /// Folder of the history, models made here and downloads; need not exist.
    pub data_folder: PathBuf,
    /// Runs models.
    pub engine: Arc<dyn Engine>,
    /// The desktop.
    pub desk: Arc<dyn Desk>,
    /// Where background work runs.
    pub runtime: Handle,
    /// The person's home, variables, and where the machine's lease is.
    pub environment: Environment,
}

/// The window's work.
pub struct App {
    /// Itself, for work that goes on in the background.
    me: Weak<Self>,
    pub(crate) data_folder: PathBuf,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) desk: Arc<dyn Desk>,
    pub(crate) runtime: Handle,
    pub(crate) environment: Environment,
    pub(crate) machine: Machine,
    /// Held by the measuring half around timed sections.
    pub(crate) quiet: Arc<Quiet>,
    hub: Arc<hub::Hub>,
    history: history::Door,
    paths: paths::Paths,
    catalogue: catalogue::Catalogue,
    places: folders::Places,
    memory: measured::Memory,
    jobs: jobs::Jobs,
    estimating: estimate::Estimating,
    /// State of the measuring half.
    pub(crate) measuring: measure::Measuring,
    /// State of the comparing half.
    pub(crate) comparing: compare::Comparing,
}

impl App {
    /// Opens at once: the history is opened meanwhile.
    pub fn open(options: AppOptions) -> Arc<Self> {
        let quiet = Arc::new(Quiet::default());
        let app = Arc::new_cyclic(|me| Self {
            me: me.clone(),
            hub: hub::Hub::new(quiet.clone()),
            quiet,
            history: history::Door::default(),
            paths: paths::Paths::default(),
            catalogue: catalogue::Catalogue::default(),
            places: folders::Places::default(),
            memory: measured::Memory::default(),
            jobs: jobs::Jobs::default(),
            estimating: estimate::Estimating::default(),
            machine: platform::machine(),
            data_folder: options.data_folder,
            engine: options.engine,
            desk: options.desk,
            runtime: options.runtime,
            environment: options.environment,
            measuring: measure::Measuring::default(),
            comparing: compare::Comparing::default(),
        });
        app.open_history();
        // Ready when the first view asks for the list.
        let early = app.clone();
        app.runtime.spawn_blocking(move || {
            // What a killed program left behind.
            twospeed_workbench::twin::remove_left_twins(&early.data_folder);
            early.keep_builtin();
        });
        app
    }

    /// Says something to every page, after the timed section if there is one.
    ///
    /// Other results are other speeds in Models too.
    pub(crate) fn tell(&self, event: AppEvent) {
        if let (AppEvent::ResultsChanged, Some(app)) = (&event, self.me.upgrade()) {
            app.refresh_known();
        }
        self.hub.tell(event);
    }

    /// Follows the app until the page is gone.
    pub async fn follow_app(&self, events: Tell<AppEvent>) -> Result<(), Problem> {
        self.hub.follow(events).await;
        Ok(())
    }

    /// Files are held over the window, or no longer.
    pub fn drop_hover(&self, over: bool) {
        self.tell(AppEvent::DropHover { over });
    }

    /// The first view is painted.
    pub async fn shown(&self) -> Result<(), Problem> {
        self.desk.show_window();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compiles only where every command has its method; what a page may ask then cannot be
    /// forgotten here.
    #[test]
    fn every_command_is_a_method() {
        macro_rules! asked {
            ($($name:ident($($argument:ident: $type:ty),*) => $answer:ty, [$($message:ty)?];)*) => {
                #[allow(dead_code, unused_imports)]
                mod doorways {
                    use super::*;
                    use crate::compare::*;
                    use crate::estimate::*;
                    use crate::frame::*;
                    use crate::jobs::*;
                    use crate::measure::*;
                    use crate::models::*;
                    $(async fn $name(app: Arc<App>, $($argument: $type,)* $(events: Tell<$message>)?) -> Result<$answer, Problem> {
                        app.$name($($argument,)* $({ let events: Tell<$message> = events; events })?).await
                    })*
                    /// The shell runs them on any thread.
                    fn may_cross_threads() {
                        fn sent<T: Send>(_: T) {}
                        fn given<T>() -> T { unreachable!("never called") }
                        $(sent($name(given(), $(given::<$type>(),)* $(given::<Tell<$message>>())?));)*
                    }
                }
            };
        }
        macro_rules! listed {
            ($($name:ident($($argument:ident: $type:ty),*) $(tells $message:ident)? -> $answer:ty;)*) => {
                asked! { $($name($($argument: $type),*) => $answer, [$($message)?];)* }
            };
        }
        crate::for_each_command!(listed);
    }
}
