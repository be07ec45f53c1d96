"""Files of items: JSON lines, JSON, CSV and Parquet, plain or compressed, read and written one item at a time."""
