"""Emulab and CloudLab: writes requests, and inventories from their manifests. Contacts no site."""
