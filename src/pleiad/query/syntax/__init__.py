"""Query text to syntax tree and back: tokens, parser, printer, and rewrites of trees."""
