"""The explorer: a page to look at a running account with, served to browsers."""
