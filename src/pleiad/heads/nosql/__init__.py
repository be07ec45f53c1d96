"""The NoSQL REST head: the protocol that Cosmos DB clients speak."""
