//! Builds anew when the dashboard was built anew: its files become part of the binary.

fn main() {
    let built = "../../ui/dist";
    // Cargo would run this each time for a folder that is not there. If it cannot be made, it may.
    let _ = std::fs::create_dir_all(built);
    println!("cargo:rerun-if-changed={built}");
}
