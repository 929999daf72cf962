//! The machine chip, and what the first view needs.

use std::sync::Arc;

use twospeed_measure::{platform, threads};
use twospeed_workbench::ReadSpeed;

use super::App;
use crate::Problem;
use crate::frame::{AppEvent, MachineCard, Start};

impl App {
    /// Everything the first view needs. Reads neither the history nor a folder: what they know
    /// follows as events.
    pub async fn start(self: &Arc<Self>) -> Result<Start, Problem> {
        let notices = self.notices_for_start();
        self.begin_scan_once();
        Ok(Start {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            machine: self.card_now(),
            settings: self.settings(),
            notices,
            running: self.is_measuring(),
            jobs: self.open_jobs(),
            opened: self.take_opened(),
        })
    }

    /// Measures the read speed of this machine.
    pub async fn calibrate(self: &Arc<Self>) -> Result<MachineCard, Problem> {
        Err(super::measure::not_yet())
    }

    fn card_now(&self) -> MachineCard {
        let topology = platform::topology();
        let cores = threads::usable_cores(&topology).map(|cores| cores.ceil() as u32);
        MachineCard {
            cpu: short_cpu(&self.machine.cpu),
            cores: cores.filter(|cores| *cores > 0),
            memory_bytes: None,
            read_bytes_s: None,
            read_at: None,
            engine: None,
            os: self.machine.os.clone(),
        }
    }
}

/// The name of a CPU without what every such name says.
fn short_cpu(name: &str) -> String {
    name.to_owned()
}
