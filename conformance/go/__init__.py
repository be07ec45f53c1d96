"""The check with the official Go client: run.py builds and starts it, main.go is where it begins."""
