"""The partition key chosen from measurement: items and requests in, every sensible key tried, the best one told."""
