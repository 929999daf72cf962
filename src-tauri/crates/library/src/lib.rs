//! Models on disk, and the one that is always there.
//!
//! - [`scan`] finds the models in folders, [`known_places`] names the folders of other programs.
//! - [`arrange`] puts what was found into groups: a model, and below it its quantizations.
//! - [`builtin`] makes the built-in model; [`Synthetic`] makes any model of random weights.
//! - [`ModelHeader`] is a model's header with its bytes, from a file here or, by
//!   [`download::remote_header`], elsewhere; [`twin::twin`] makes its speed twins.
//! - [`display`] makes names safe to show: they come from anywhere.
//!
//! ```no_run
//! use twospeed_library::{Limits, arrange, scan};
//!
//! let scan = scan(&["/models".into()], Limits::default(), &[], &|| true, &mut |_| {});
//! for group in arrange(&scan.items).groups {
//!     println!("{}", group.name);
//!     for member in group.members {
//!         println!("  {}", scan.items[member].label);
//!     }
//! }
//! for note in scan.notes {
//!     eprintln!("{note}");
//! }
//! ```

pub mod builtin;
pub mod display;
pub mod download;
mod file_type;
mod group;
mod header;
mod item;
pub mod landing;
mod mixture;
pub mod names;
mod note;
mod ollama;
mod os;
mod places;
pub mod quantized;
mod scan;
mod shape;
pub mod synthetic;
pub mod twin;
pub mod vocabulary;
mod walk;

pub use file_type::{FileType, FileTypeError};
pub use group::{Group, Shelf, arrange};
pub use header::ModelHeader;
pub use item::{FileOnDisk, Item, Reading, Role};
pub use note::Note;
pub use places::known_places;
pub use quantized::{
    Makeable, as_quantized, quantized_path, quantized_size, requantizes, types_that_can_be_made,
};
pub use scan::{Progress, Scan, scan};
pub use shape::LlamaShape;
pub use synthetic::{Synthetic, is_synthetic};
pub use walk::Limits;
