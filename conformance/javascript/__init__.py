"""The check with the official JavaScript client: run.py starts it, smoke.mjs is the check itself."""
