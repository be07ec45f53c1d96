"""Batches and bulk over REST: the operation, its entries, and their two forms, JSON and HybridRow."""
