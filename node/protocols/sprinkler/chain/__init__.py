"""Replicated proxies: the chain and its configuration service (paper 3.3)."""
