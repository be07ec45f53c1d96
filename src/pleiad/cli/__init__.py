"""The command line: one file per verb, whose help is the manual."""
