"""Drawings of topologies: positions of regions, their colours, and SVG elements."""
