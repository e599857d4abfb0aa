"""Other machines, reached by SSH: inventories, placement, deployment, coordination."""
