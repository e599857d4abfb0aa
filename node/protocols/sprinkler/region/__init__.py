"""The region-level protocol: clients, gossip and dissemination (paper 3.2)."""
