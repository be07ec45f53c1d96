"""The plans that clients ask for, to merge the partitions of a query themselves."""
