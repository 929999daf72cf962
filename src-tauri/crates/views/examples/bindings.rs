//! Writes the page's types: `cargo run --release -p twospeed-views --example bindings > FILE`.

fn main() {
    print!("{}", twospeed_views::bindings::typescript());
}
