//! `twospeed`: everything the window can do on data, without a screen.

fn main() {}
