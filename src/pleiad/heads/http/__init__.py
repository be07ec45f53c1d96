"""What the heads that speak HTTP share: a request as they see it, routes, and the names a server answers to."""
