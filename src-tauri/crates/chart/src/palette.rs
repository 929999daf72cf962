//! The colours: one fixed colour per role, so that a theme is a swap and never a second drawing.

/// What a colour is for. A figure names roles; a theme gives them colours.
///
/// Blue is prefill, orange is decode, grey is the estimator; nothing else may use blue or orange.
/// Shapes take the plain colour, text the `Ink` one (orange text needs the darker tone).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// What the figure stands on.
    Background,
    /// Grid lines; the only role that may fall below 3:1, since every value is written out.
    Grid,
    /// Titles, row names, whiskers.
    Ink,
    /// Subtitles and notes.
    InkSecond,
    /// Axis labels, deviations, provenance.
    InkThird,
    /// Prefill shapes.
    Prefill,
    /// The part of prefill's time that attention takes.
    PrefillHalf,
    /// Prefill text.
    PrefillInk,
    /// Decode shapes.
    Decode,
    /// The part of decode's time that the cache takes.
    DecodeHalf,
    /// Decode text.
    DecodeInk,
    /// The expected range.
    Band,
    /// The edges of the expected range.
    BandEdge,
    /// Ceilings.
    Ceiling,
}

/// Light or dark colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Theme {
    /// Dark marks on white; what exports take unless asked otherwise.
    #[default]
    Light,
    /// Light marks on near-black.
    Dark,
}

/// A colour in sRGB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Colour(pub u8, pub u8, pub u8);

impl Colour {
    /// As SVG writes it: `#1F68C4`.
    pub fn hex(self) -> String {
        format!("#{:02X}{:02X}{:02X}", self.0, self.1, self.2)
    }
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 14] = [
        Self::Background,
        Self::Grid,
        Self::Ink,
        Self::InkSecond,
        Self::InkThird,
        Self::Prefill,
        Self::PrefillHalf,
        Self::PrefillInk,
        Self::Decode,
        Self::DecodeHalf,
        Self::DecodeInk,
        Self::Band,
        Self::BandEdge,
        Self::Ceiling,
    ];

    /// Its colour in a theme.
    pub fn colour(self, theme: Theme) -> Colour {
        let (light, dark) = match self {
            Self::Background => (Colour(0xff, 0xff, 0xff), Colour(0x17, 0x18, 0x1b)),
            Self::Grid => (Colour(0xec, 0xec, 0xe8), Colour(0x25, 0x27, 0x2b)),
            Self::Ink => (Colour(0x1a, 0x1b, 0x1d), Colour(0xed, 0xed, 0xeb)),
            Self::InkSecond => (Colour(0x4a, 0x4d, 0x52), Colour(0xb6, 0xb8, 0xbc)),
            Self::InkThird => (Colour(0x63, 0x66, 0x6c), Colour(0x94, 0x97, 0x9d)),
            Self::Prefill => (Colour(0x1f, 0x68, 0xc4), Colour(0x5e, 0xa6, 0xf4)),
            Self::PrefillHalf => (Colour(0x8f, 0xb4, 0xe2), Colour(0x3b, 0x5f, 0x88)),
            Self::PrefillInk => (Colour(0x1a, 0x5b, 0xb0), Colour(0x7a, 0xb7, 0xf8)),
            Self::Decode => (Colour(0xd4, 0x61, 0x0f), Colour(0xec, 0x8f, 0x48)),
            Self::DecodeHalf => (Colour(0xea, 0xb0, 0x87), Colour(0x82, 0x54, 0x32)),
            Self::DecodeInk => (Colour(0xa8, 0x4a, 0x06), Colour(0xf3, 0xa2, 0x65)),
            Self::Band => (Colour(0xcf, 0xcf, 0xca), Colour(0x43, 0x45, 0x4b)),
            Self::BandEdge => (Colour(0x8b, 0x8b, 0x85), Colour(0x7b, 0x7e, 0x85)),
            Self::Ceiling => (Colour(0x55, 0x58, 0x5d), Colour(0xa4, 0xa7, 0xad)),
        };
        match theme {
            Theme::Light => light,
            Theme::Dark => dark,
        }
    }

    /// The custom property that holds its colour in the app's stylesheet.
    pub fn css_name(self) -> &'static str {
        match self {
            Self::Background => "--bg",
            Self::Grid => "--grid",
            Self::Ink => "--ink",
            Self::InkSecond => "--ink-2",
            Self::InkThird => "--ink-3",
            Self::Prefill => "--prefill",
            Self::PrefillHalf => "--prefill-half",
            Self::PrefillInk => "--prefill-ink",
            Self::Decode => "--decode",
            Self::DecodeHalf => "--decode-half",
            Self::DecodeInk => "--decode-ink",
            Self::Band => "--band",
            Self::BandEdge => "--band-edge",
            Self::Ceiling => "--ceiling",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// WCAG 2.2: relative luminance of an sRGB colour.
    fn luminance(colour: Colour) -> f64 {
        let linear = |channel: u8| {
            let c = f64::from(channel) / 255.0;
            if c <= 0.04045 {
                c / 12.92
            } else {
                ((c + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * linear(colour.0) + 0.7152 * linear(colour.1) + 0.0722 * linear(colour.2)
    }

    fn contrast(a: Colour, b: Colour) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn contrast_is_measured_as_wcag_does() {
        assert!((contrast(Colour(0, 0, 0), Colour(255, 255, 255)) - 21.0).abs() < 1e-9);
        // #767676 on white is the well-known edge of 4.5:1.
        let edge = contrast(Colour(0x76, 0x76, 0x76), Colour(255, 255, 255));
        assert!((4.5..4.6).contains(&edge), "{edge}");
    }

    #[test]
    fn text_reaches_4_5_and_marks_3_on_the_background() {
        for theme in [Theme::Light, Theme::Dark] {
            let ground = Role::Background.colour(theme);
            for role in Role::ALL {
                let least = match role {
                    Role::Ink
                    | Role::InkSecond
                    | Role::InkThird
                    | Role::PrefillInk
                    | Role::DecodeInk => 4.5,
                    Role::Prefill | Role::Decode | Role::BandEdge | Role::Ceiling => 3.0,
                    // A lighter tone beside its own full one, told apart by a gap and named in words.
                    Role::PrefillHalf | Role::DecodeHalf => 1.8,
                    // The band has edges that carry the contrast; the grid only guides the eye.
                    Role::Background | Role::Grid | Role::Band => 1.0,
                };
                let reached = contrast(role.colour(theme), ground);
                assert!(reached >= least, "{role:?} in {theme:?}: {reached:.2}");
            }
        }
    }

    #[test]
    fn whiskers_are_seen_on_the_bars_they_stand_on() {
        for theme in [Theme::Light, Theme::Dark] {
            for bar in [Role::Prefill, Role::Decode] {
                let reached = contrast(Role::Ink.colour(theme), bar.colour(theme));
                // Dark theme: light ink on light bars; the caps stand out by form. 2:1 is kept.
                assert!(reached >= 2.0, "{bar:?} in {theme:?}: {reached:.2}");
            }
        }
    }

    #[test]
    fn no_two_roles_share_a_light_colour_since_the_colour_names_the_role() {
        for (i, a) in Role::ALL.iter().enumerate() {
            for b in &Role::ALL[i + 1..] {
                assert_ne!(
                    a.colour(Theme::Light),
                    b.colour(Theme::Light),
                    "{a:?} {b:?}"
                );
            }
        }
    }
}
