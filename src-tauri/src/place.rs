//! Where the window stands: remembered, but never where nobody can reach it.

use tauri::{PhysicalPosition, PhysicalSize, WebviewWindow};

/// So much of the window's upper edge must be seen for a person to take hold of it, pixels.
const HANDLE: PhysicalSize<u32> = PhysicalSize::new(120, 32);

/// A rectangle of pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Area {
    /// Upper left corner.
    pub at: PhysicalPosition<i32>,
    /// Width and height.
    pub size: PhysicalSize<u32>,
}

/// Moves and shrinks a window that was restored to a place that is no more.
pub fn keep_in_reach(window: &WebviewWindow) -> tauri::Result<()> {
    if window.is_maximized()? {
        return Ok(());
    }
    let screens: Vec<Area> = window
        .available_monitors()?
        .iter()
        .map(|monitor| {
            let area = monitor.work_area();
            Area {
                at: area.position,
                size: area.size,
            }
        })
        .collect();
    let now = Area {
        at: window.outer_position()?,
        size: window.outer_size()?,
    };
    if let Some(better) = within_reach(now, &screens) {
        // The frame that the desktop draws around it is not ours to set.
        let inner = window.inner_size()?;
        window.set_size(PhysicalSize::new(
            (better.size.width + inner.width).saturating_sub(now.size.width),
            (better.size.height + inner.height).saturating_sub(now.size.height),
        ))?;
        window.set_position(better.at)?;
    }
    Ok(())
}

/// Where the window should be instead; `None` where it is well, or where no screen is known.
pub fn within_reach(window: Area, screens: &[Area]) -> Option<Area> {
    let seen = |screen: &Area| {
        let across = overlap(
            window.at.x,
            window.size.width,
            screen.at.x,
            screen.size.width,
        );
        let top = window.at.y >= screen.at.y
            && window.at.y.saturating_add_unsigned(HANDLE.height)
                <= screen.at.y.saturating_add_unsigned(screen.size.height);
        top && across >= HANDLE.width.min(window.size.width)
    };
    let home = screens.first()?;
    let screen = screens.iter().find(|screen| seen(screen));
    let room = screen.unwrap_or(home).size;
    let size = PhysicalSize::new(
        window.size.width.min(room.width),
        window.size.height.min(room.height),
    );
    match screen {
        Some(_) if size == window.size => None,
        Some(_) => Some(Area {
            at: window.at,
            size,
        }),
        None => Some(Area {
            at: PhysicalPosition::new(
                home.at
                    .x
                    .saturating_add_unsigned((room.width - size.width) / 2),
                home.at
                    .y
                    .saturating_add_unsigned((room.height - size.height) / 2),
            ),
            size,
        }),
    }
}

/// Pixels that two stretches share.
fn overlap(a: i32, a_length: u32, b: i32, b_length: u32) -> u32 {
    let end = a
        .saturating_add_unsigned(a_length)
        .min(b.saturating_add_unsigned(b_length));
    u32::try_from(i64::from(end) - i64::from(a.max(b))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(x: i32, y: i32, width: u32, height: u32) -> Area {
        Area {
            at: PhysicalPosition::new(x, y),
            size: PhysicalSize::new(width, height),
        }
    }

    #[test]
    fn a_window_that_can_be_reached_stays() {
        let screens = [area(0, 0, 1920, 1080), area(1920, 0, 1280, 1024)];
        assert_eq!(within_reach(area(100, 50, 1280, 800), &screens), None);
        assert_eq!(within_reach(area(1900, 10, 1280, 800), &screens), None);
        // Half out to the left or below is a choice.
        assert_eq!(within_reach(area(-600, 500, 1280, 800), &screens), None);
    }

    #[test]
    fn a_window_on_a_screen_that_is_gone_comes_back() {
        let screens = [area(0, 0, 1920, 1080)];
        let back = Some(area(320, 140, 1280, 800));
        assert_eq!(within_reach(area(2500, 100, 1280, 800), &screens), back);
        assert_eq!(within_reach(area(100, -700, 1280, 800), &screens), back);
        assert_eq!(within_reach(area(100, 1070, 1280, 800), &screens), back);
        assert_eq!(within_reach(area(1890, 100, 1280, 800), &screens), back);
    }

    #[test]
    fn a_window_larger_than_the_screen_is_made_smaller() {
        let screens = [area(0, 0, 1000, 700)];
        assert_eq!(
            within_reach(area(0, 0, 1280, 800), &screens),
            Some(area(0, 0, 1000, 700))
        );
    }

    #[test]
    fn without_any_known_screen_nothing_is_moved() {
        assert_eq!(within_reach(area(5000, 5000, 10, 10), &[]), None);
    }

    #[test]
    fn absurd_places_do_not_overflow() {
        let screens = [area(i32::MAX - 10, 0, u32::MAX, u32::MAX)];
        assert!(within_reach(area(i32::MIN, i32::MIN, u32::MAX, u32::MAX), &screens).is_some());
    }
}
