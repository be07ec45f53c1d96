"""The admin API and the metrics: how operators and tests look into a server and steer it."""
