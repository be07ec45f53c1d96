"""The check with the official Rust client: run.py builds and starts it, src/main.rs is where it begins."""
