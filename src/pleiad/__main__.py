"""`python -m pleiad` is the `pleiad` command."""

from pleiad.cli.main import main

main()
