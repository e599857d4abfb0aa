"""Routing protocols in the gateways: FRR's daemons and their configurations."""
