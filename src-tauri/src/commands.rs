//! The doorways of the page: one for each line of the list of commands.

use std::sync::Arc;

use tauri::State;
use tauri::ipc::{Channel, Invoke, IpcResponse};
use twospeed_views::Problem;
use twospeed_views::app::{App, Tell};
use twospeed_views::compare::*;
use twospeed_views::estimate::*;
use twospeed_views::frame::*;
use twospeed_views::jobs::*;
use twospeed_views::measure::*;
use twospeed_views::models::*;

/// What the window is about, as Tauri keeps it.
pub type Doors = Arc<App>;

/// From here to the page. One that is gone hears nothing, and nobody minds.
fn teller<M: IpcResponse + Send + Sync + 'static>(channel: Channel<M>) -> Tell<M> {
    Arc::new(move |message| {
        let _ = channel.send(message);
    })
}

macro_rules! doorways {
    ($($name:ident($($argument:ident: $type:ty),*) $(tells $message:ident)? -> $answer:ty;)*) => {
        $(
            #[tauri::command]
            async fn $name(
                app: State<'_, Doors>,
                $($argument: $type,)*
                $(events: Channel<$message>,)?
            ) -> Result<$answer, Problem> {
                app.$name($($argument,)* $(teller::<$message>(events))?).await
            }
        )*

        /// Answers what the page asks.
        pub fn handler() -> impl Fn(Invoke<tauri::Wry>) -> bool + Send + Sync + 'static {
            tauri::generate_handler![$($name),*]
        }

        #[cfg(test)]
        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

twospeed_views::for_each_command!(doorways);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_may_ask_each_command_and_nothing_else() {
        let capability: serde_json::Value =
            serde_json::from_str(include_str!("../capabilities/window.json")).unwrap();
        let granted: Vec<_> = capability["permissions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|permission| permission.as_str().unwrap())
            .collect();
        let wanted: Vec<_> = NAMES
            .iter()
            .map(|name| format!("allow-{}", name.replace('_', "-")))
            .collect();
        assert_eq!(
            granted, wanted,
            "capabilities/window.json names other commands than views/src/commands.rs"
        );
    }
}
