"""Emulab and CloudLab: what to ask the site for, and an inventory of what it gave. No site is called."""
