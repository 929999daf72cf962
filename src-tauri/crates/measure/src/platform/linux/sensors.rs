//! Temperature and power supply.

use super::tree::Tree;

const HWMON: &str = "/sys/class/hwmon";
const THERMAL: &str = "/sys/class/thermal";
const POWER: &str = "/sys/class/power_supply";

/// Drivers of sensors inside the processor.
const CPU_SENSORS: [&str; 6] = [
    "coretemp",
    "k10temp",
    "zenpower",
    "cpu_thermal",
    "soc_thermal",
    "scmi_sensors",
];

/// Thermal zones of the processor.
const CPU_ZONES: [&str; 5] = [
    "x86_pkg_temp",
    "cpu-thermal",
    "cpu_thermal",
    "soc-thermal",
    "CPU-therm",
];

/// The highest temperature of the processor in degrees Celsius.
pub(super) fn temperature_c(tree: &Tree) -> Option<f64> {
    let chips = tree.names(HWMON).unwrap_or_default();
    let chips = chips
        .iter()
        .map(|chip| format!("{HWMON}/{chip}"))
        .filter(|chip| {
            let name = tree.text(format!("{chip}/name")).unwrap_or_default();
            CPU_SENSORS.contains(&name.as_str())
        })
        .flat_map(|chip| {
            let inputs = tree.names(&chip).unwrap_or_default();
            inputs
                .into_iter()
                .filter(|file| file.starts_with("temp") && file.ends_with("_input"))
                .map(move |file| format!("{chip}/{file}"))
        });
    let zones = tree.names(THERMAL).unwrap_or_default();
    let zones = zones
        .iter()
        .map(|zone| format!("{THERMAL}/{zone}"))
        .filter(|zone| {
            let kind = tree.text(format!("{zone}/type")).unwrap_or_default();
            CPU_ZONES.iter().any(|known| kind.starts_with(known))
        })
        .map(|zone| format!("{zone}/temp"));
    chips
        .chain(zones)
        .filter_map(|file| Some(tree.number::<f64>(file)? / 1000.0))
        .max_by(f64::total_cmp)
}

/// Whether the machine runs on battery; one without a battery does not.
pub(super) fn on_battery(tree: &Tree) -> Option<bool> {
    let supplies = tree.names(POWER)?;
    let read = |supply: &str, file: &str| tree.text(format!("{POWER}/{supply}/{file}"));
    let of_kind = |kinds: &[&str]| -> Vec<&String> {
        supplies
            .iter()
            .filter(|supply| {
                let kind = read(supply, "type").unwrap_or_default();
                // A mouse has a battery too.
                kinds.contains(&kind.as_str()) && read(supply, "scope").as_deref() != Some("Device")
            })
            .collect()
    };
    let plugged = of_kind(&["Mains", "USB"])
        .iter()
        .any(|supply| read(supply, "online").as_deref() == Some("1"));
    if plugged {
        return Some(false);
    }
    let batteries = of_kind(&["Battery"]);
    if batteries.is_empty() {
        return Some(false);
    }
    let states: Vec<String> = batteries
        .iter()
        .filter_map(|supply| read(supply, "status"))
        .collect();
    if states.is_empty() || states.iter().all(|state| state == "Unknown") {
        return None;
    }
    Some(states.iter().any(|state| state == "Discharging"))
}

#[cfg(test)]
mod tests {
    use super::super::tree::tests::tree;
    use super::*;

    #[test]
    fn the_hottest_sensor_of_the_processor_counts() {
        let (_folder, tree) = tree(&[
            ("sys/class/hwmon/hwmon0/name", "nvme\n"),
            ("sys/class/hwmon/hwmon0/temp1_input", "99000\n"),
            ("sys/class/hwmon/hwmon1/name", "coretemp\n"),
            ("sys/class/hwmon/hwmon1/temp1_input", "71000\n"),
            ("sys/class/hwmon/hwmon1/temp2_input", "74500\n"),
            ("sys/class/hwmon/hwmon1/temp1_crit", "100000\n"),
            ("sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n"),
            ("sys/class/thermal/thermal_zone0/temp", "70000\n"),
            ("sys/class/thermal/thermal_zone1/type", "iwlwifi_1\n"),
            ("sys/class/thermal/thermal_zone1/temp", "90000\n"),
        ]);
        assert_eq!(temperature_c(&tree), Some(74.5));
    }

    #[test]
    fn without_sensors_the_temperature_is_unknown() {
        let (_folder, tree) = tree(&[]);
        assert_eq!(temperature_c(&tree), None);
        assert_eq!(on_battery(&tree), None);
    }

    fn laptop(plugged: &str, status: &str) -> Option<bool> {
        let (_folder, tree) = tree(&[
            ("sys/class/power_supply/AC/type", "Mains"),
            ("sys/class/power_supply/AC/online", plugged),
            ("sys/class/power_supply/BAT0/type", "Battery"),
            ("sys/class/power_supply/BAT0/status", status),
        ]);
        on_battery(&tree)
    }

    #[test]
    fn a_laptop_is_on_battery_when_it_discharges() {
        assert_eq!(laptop("0", "Discharging"), Some(true));
        assert_eq!(laptop("1", "Charging"), Some(false));
        assert_eq!(laptop("1", "Discharging"), Some(false), "plugged in");
        assert_eq!(laptop("0", "Unknown"), None);
    }

    #[test]
    fn the_battery_of_a_mouse_does_not_run_the_machine() {
        let (_folder, tree) = tree(&[
            ("sys/class/power_supply/hid-1/type", "Battery"),
            ("sys/class/power_supply/hid-1/scope", "Device"),
            ("sys/class/power_supply/hid-1/status", "Discharging"),
        ]);
        assert_eq!(on_battery(&tree), Some(false));
    }
}
