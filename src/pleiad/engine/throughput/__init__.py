"""Who pays: provisioned throughput, its offers, and the budgets that servers share."""
