"""The engine: operations on databases, containers and items, as every head calls them."""
