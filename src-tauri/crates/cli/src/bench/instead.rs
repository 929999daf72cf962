//! What `bench` says instead of measuring.

use std::io::Write;

use twospeed_engine::process::WorkerProcess;
use twospeed_engine::protocol::{Device, DeviceKind};
use twospeed_engine::{Engine, Start};
use twospeed_library::display::shown;
use twospeed_measure::Plan;

use crate::Failure;
use crate::context::Context;

/// Prints the versions of Twospeed and of the engine.
pub fn version() -> Result<(), Failure> {
    let engine = twospeed_worker::engine_build();
    let text = format!(
        "twospeed {}, llama.cpp build {} (commit {}, llama-cpp-sys-2 {})\n",
        env!("CARGO_PKG_VERSION"),
        engine.build_number,
        engine.build_commit,
        engine.crate_version
    );
    crate::print(text.as_bytes())
}

/// Prints the devices that `-dev` can name, as llama-bench does: the processor is none of them.
pub fn list_devices(context: &Context) -> Result<(), Failure> {
    let devices = context.block_on(async {
        let engine = WorkerProcess::find().map_err(Failure::of)?;
        let session = engine.start(&Start::default()).await.map_err(Failure::of)?;
        let devices = session.hello().devices.clone();
        session.stop().await;
        Ok(devices)
    })?;
    let mut out = Vec::new();
    write_devices(&mut out, &devices).map_err(|error| Failure::of_output(&error))?;
    crate::print(&out)
}

fn write_devices(out: &mut dyn Write, devices: &[Device]) -> std::io::Result<()> {
    writeln!(out, "Available devices:")?;
    let named: Vec<_> = devices
        .iter()
        .filter(|device| device.kind != DeviceKind::Cpu)
        .collect();
    if named.is_empty() {
        return writeln!(out, "  (none)");
    }
    for device in named {
        let mib = |bytes: Option<u64>| match bytes {
            Some(bytes) => format!("{} MiB", bytes >> 20),
            None => "unknown MiB".to_owned(),
        };
        writeln!(
            out,
            "  {}: {} ({}, {} free)",
            shown(&device.name),
            shown(&device.description),
            mib(device.memory_total),
            mib(device.memory_free)
        )?;
    }
    Ok(())
}

/// Prints the plan as JSON.
pub fn print_plan(plan: &Plan) -> Result<(), Failure> {
    let mut text = serde_json::to_vec_pretty(plan).map_err(Failure::of)?;
    text.push(b'\n');
    crate::print(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, kind: DeviceKind, memory: Option<u64>) -> Device {
        Device {
            name: name.into(),
            description: format!("{name} in words"),
            kind,
            memory_total: memory,
            memory_free: memory.map(|bytes| bytes / 2),
        }
    }

    fn listed(devices: &[Device]) -> String {
        let mut out = Vec::new();
        write_devices(&mut out, devices).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_processor_is_no_device_to_name() {
        let cpu = device("CPU", DeviceKind::Cpu, Some(1 << 34));
        // As llama-bench prints it on a machine without a GPU.
        assert_eq!(
            listed(std::slice::from_ref(&cpu)),
            "Available devices:\n  (none)\n"
        );
        let gpu = device("Vulkan0", DeviceKind::Gpu, Some(8 << 30));
        assert_eq!(
            listed(&[gpu, cpu]),
            "Available devices:\n  Vulkan0: Vulkan0 in words (8192 MiB, 4096 MiB free)\n"
        );
    }
}
