"""The check with the official Java client: run.py builds and starts it, Main.java is where it begins."""
