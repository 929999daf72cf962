//! The machine chip, and what the first view needs.

use std::sync::Arc;

use twospeed_measure::machine::Probe;
use twospeed_measure::platform::{self, Host};
use twospeed_measure::threads;

use super::App;
use super::folders::on_a_thread;
use crate::Problem;
use crate::frame::{MachineCard, Start};

impl App {
    /// Everything the first view needs. Waits for neither the history nor a folder: what they know
    /// follows as events.
    pub async fn start(self: &Arc<Self>) -> Result<Start, Problem> {
        let machine = self.card().await;
        let notices = self.notices_for_start();
        self.begin_scan_once();
        Ok(Start {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            machine,
            settings: self.settings(),
            notices,
            running: self.is_measuring(),
            jobs: self.open_jobs(),
            opened: self.take_opened(),
        })
    }

    /// The chip as it is now.
    pub(super) async fn card(self: &Arc<Self>) -> MachineCard {
        let app = self.clone();
        let memory = on_a_thread(move || Ok(app.limits().1))
            .await
            .unwrap_or(None);
        let usable = threads::usable_cores(&platform::topology());
        let known = self.known();
        // The largest buffer is the one that no cache holds.
        let read = known.read_speed.as_ref().and_then(|speed| {
            speed
                .readings()
                .iter()
                .max_by_key(|reading| reading.buffer_bytes)
        });
        MachineCard {
            cpu: short_cpu(&self.machine.cpu),
            cores: usable.map(|cores| (cores as u32).max(1)),
            memory_bytes: memory,
            read_bytes_s: read.map(|reading| reading.bytes_per_second),
            read_at: read.map(|reading| reading.at.to_string()),
            calibrated_at: known.calibration_at().map(str::to_owned),
            engine: known.engine.clone(),
            os: self.machine.os.clone(),
        }
    }

    /// Memory that is free to use now, bytes.
    pub(super) fn free_memory(&self) -> Option<u64> {
        self.limits().0
    }

    /// Memory that is free, and that this program may use in all, bytes.
    fn limits(&self) -> (Option<u64>, Option<u64>) {
        let state = Host::new().state(None);
        (
            state.memory_available_bytes,
            state.memory_limit_bytes.or(self.machine.memory_bytes),
        )
    }
}

/// The name of a CPU without what every such name says, for a narrow column.
fn short_cpu(name: &str) -> String {
    let name = name
        .replace("(R)", "")
        .replace("(TM)", "")
        .replace("(tm)", "");
    let name = name.split(" @ ").next().unwrap_or_default();
    let name = name.split(" w/ ").next().unwrap_or_default();
    let name = name.split(" with Radeon").next().unwrap_or_default();
    let says_nothing = |word: &str| {
        matches!(word, "CPU" | "Processor" | "Gen")
            || word.ends_with("-Core")
            || word
                .strip_suffix("th")
                .is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let words: Vec<_> = name
        .split_whitespace()
        .filter(|word| !says_nothing(word))
        .collect();
    twospeed_library::display::shown(&words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_cpu_is_short() {
        for (long, short) in [
            ("AMD EPYC 9B14", "AMD EPYC 9B14"),
            ("AMD EPYC 7B13 64-Core Processor", "AMD EPYC 7B13"),
            ("Intel(R) Xeon(R) CPU @ 2.80GHz", "Intel Xeon"),
            ("12th Gen Intel(R) Core(TM) i7-1260P", "Intel Core i7-1260P"),
            (
                "AMD Ryzen 7 7840U w/ Radeon 780M Graphics",
                "AMD Ryzen 7 7840U",
            ),
            ("Apple M2", "Apple M2"),
            ("", ""),
        ] {
            assert_eq!(short_cpu(long), short);
        }
    }
}
