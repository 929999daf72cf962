//! The history, opened beside everything else.

use std::sync::Arc;

use tokio::sync::watch;
use twospeed_history::History;

use super::App;
use crate::Problem;
use crate::desk::locked;
use crate::frame::AppEvent;

/// What opening came to; `None` while it goes on.
type Opened = Option<Result<History, Problem>>;

/// The way to the history.
pub(crate) struct Door {
    opened: watch::Sender<Opened>,
    /// Whether a page has been told what `start` had to say, without the history's notices.
    started_without: std::sync::Mutex<bool>,
}

impl Default for Door {
    fn default() -> Self {
        Self {
            opened: watch::Sender::new(None),
            started_without: std::sync::Mutex::default(),
        }
    }
}

impl App {
    /// Opens the history in the background.
    pub(super) fn open_history(self: &Arc<Self>) {
        let app = self.clone();
        self.runtime.spawn(async move {
            let opened = History::open(&app.data_folder)
                .await
                .map_err(|error| Problem::new(error.code(), error));
            let late = {
                let late = locked(&app.history.started_without);
                app.history.opened.send_replace(Some(opened));
                *late
            };
            if late {
                for (message, failed) in app.history_notices() {
                    app.tell(AppEvent::Notice { message, failed });
                }
            }
            app.refresh_known();
        });
    }

    /// The history, when it is open.
    ///
    /// Errors: why it cannot be opened, a sentence with its own code.
    pub(crate) async fn history(&self) -> Result<History, Problem> {
        let mut opened = self.history.opened.subscribe();
        match opened.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(opened)) => opened.clone(),
            _ => Err(Problem::new(
                "history_closed",
                "The history is being closed. Start Twospeed again.",
            )),
        }
    }

    /// Leaves a single tidy file; nothing is lost without it.
    pub(super) async fn close_history(&self) {
        let opened = self.history.opened.borrow().clone();
        if let Some(Ok(history)) = opened {
            history.close().await;
        }
    }

    /// What `start` says of the history; what is not known yet comes as events.
    pub(super) fn notices_for_start(&self) -> Vec<String> {
        let mut without = locked(&self.history.started_without);
        *without |= self.history.opened.borrow().is_none();
        self.history_notices()
            .into_iter()
            .map(|(sentence, _)| sentence)
            .collect()
    }

    /// Sentences, and whether each is a failure.
    fn history_notices(&self) -> Vec<(String, bool)> {
        match &*self.history.opened.borrow() {
            None => Vec::new(),
            Some(Err(problem)) => vec![(problem.message.clone(), true)],
            Some(Ok(history)) => history
                .notices()
                .iter()
                .map(|notice| (notice.to_string(), false))
                .collect(),
        }
    }
}
