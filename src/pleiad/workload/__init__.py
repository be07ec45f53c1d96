"""The workload of containers: what was asked of them, as records that can be kept, exported and made elsewhere."""
