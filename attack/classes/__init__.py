"""The classes of attack, one file each: what it promises to show is in the docstring of the file."""
