"""The catalog: databases, containers, offers, users, permissions and the durable partition map."""
