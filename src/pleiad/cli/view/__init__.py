"""What verbs print: tables, words and lines, and the views of containers, items, partitions and advice."""
