"""Traces one event through the network, from the captures: `cutset follow`."""
