"""Which paths of items queries read and writes change."""
