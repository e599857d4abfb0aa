"""Emulab and CloudLab: requests, and inventories from manifests. The package contacts no site."""
