//! Switches of WebKitGTK: against a blank window where that is known, and for quiet while something
//! is timed.
//!
//! WebKitGTK hands its frames to the desktop as DMA-BUFs. With NVIDIA's own driver the window then
//! stays blank (X11) or the program ends with a protocol error as soon as it shows one (Wayland,
//! explicit synchronisation); without a render device, as in many virtual machines, there is nothing
//! to make such buffers with. WebKit and the driver read the switches once, when GTK starts, so the
//! choice is made before, from what the system says of itself. A variable that is already set,
//! to whatever value, was set by a person who knows why: it stays.

/// Makes WebKitGTK hand over its frames in shared memory.
pub const NO_DMABUF: &str = "WEBKIT_DISABLE_DMABUF_RENDERER";
/// Keeps NVIDIA's driver from Wayland's explicit synchronisation.
pub const NO_EXPLICIT_SYNC: &str = "__NV_DISABLE_EXPLICIT_SYNC";

/// Keeps WebKit from looking at the memory that is free every few seconds, which it would do beside a
/// section that is timed, too. What it gives back when memory is scarce is little for one page.
pub const NO_PRESSURE_MONITOR: &str = "WEBKIT_DISABLE_MEMORY_PRESSURE_MONITOR";

/// What matters of a system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct System {
    /// The session is Wayland's, not X11's.
    pub wayland: bool,
    /// NVIDIA's own driver runs a device.
    pub nvidia: bool,
    /// There is a device that this person may render with.
    pub render_device: bool,
}

/// The variables that this system needs; each is to be set to `1`.
pub fn needed(system: System, is_set: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let mut needed = vec![NO_PRESSURE_MONITOR];
    if system.nvidia || !system.render_device {
        needed.push(NO_DMABUF);
    }
    if system.nvidia && system.wayland {
        needed.push(NO_EXPLICIT_SYNC);
    }
    needed.retain(|name| !is_set(name));
    needed
}

/// Sets what this system needs. Call it first of all: before GTK and before any other thread.
#[cfg(target_os = "linux")]
pub fn prepare() {
    for name in needed(system(), |name| std::env::var_os(name).is_some()) {
        // SAFETY: called before this process has a second thread, so nobody reads the environment
        // at the same time.
        #[allow(unsafe_code)]
        unsafe {
            std::env::set_var(name, "1");
        }
    }
}

/// Elsewhere there is nothing to prepare.
#[cfg(not(target_os = "linux"))]
pub fn prepare() {}

#[cfg(target_os = "linux")]
fn system() -> System {
    let wayland = match std::env::var("GDK_BACKEND") {
        Ok(backend) => backend.starts_with("wayland"),
        Err(_) => std::env::var_os("WAYLAND_DISPLAY").is_some_and(|name| !name.is_empty()),
    };
    System {
        wayland,
        nvidia: std::path::Path::new("/proc/driver/nvidia/version").exists(),
        render_device: has_render_device(),
    }
}

/// A render node that may be opened: one of another person's seat is as good as none.
#[cfg(target_os = "linux")]
fn has_render_device() -> bool {
    let Ok(devices) = std::fs::read_dir("/dev/dri") else {
        return false;
    };
    devices.flatten().any(|device| {
        device
            .file_name()
            .as_encoded_bytes()
            .starts_with(b"renderD")
            && std::fs::File::options()
                .read(true)
                .write(true)
                .open(device.path())
                .is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: System = System {
        wayland: true,
        nvidia: false,
        render_device: true,
    };
    const NOTHING_SET: fn(&str) -> bool = |_| false;
    const KNOWN_QUIET: fn(&str) -> bool = |name| name == NO_PRESSURE_MONITOR;

    #[test]
    fn on_a_sound_system_webkit_is_kept_quiet_and_nothing_else() {
        assert_eq!(needed(SOUND, NOTHING_SET), [NO_PRESSURE_MONITOR]);
        let x11 = System {
            wayland: false,
            ..SOUND
        };
        assert_eq!(needed(x11, NOTHING_SET), [NO_PRESSURE_MONITOR]);
    }

    #[test]
    fn nvidia_needs_one_switch_on_x11_and_two_on_wayland() {
        let wayland = System {
            nvidia: true,
            ..SOUND
        };
        assert_eq!(needed(wayland, KNOWN_QUIET), [NO_DMABUF, NO_EXPLICIT_SYNC]);
        let x11 = System {
            wayland: false,
            ..wayland
        };
        assert_eq!(needed(x11, KNOWN_QUIET), [NO_DMABUF]);
    }

    #[test]
    fn without_a_render_device_frames_go_through_memory() {
        let none = System {
            render_device: false,
            ..SOUND
        };
        assert_eq!(needed(none, KNOWN_QUIET), [NO_DMABUF]);
    }

    #[test]
    fn what_the_person_set_stays() {
        let system = System {
            nvidia: true,
            ..SOUND
        };
        let set = |name: &str| name == NO_DMABUF || KNOWN_QUIET(name);
        assert_eq!(needed(system, set), [NO_EXPLICIT_SYNC]);
        assert!(needed(system, |_| true).is_empty());
    }
}
