"""Emulab and CloudLab: what to ask the site for, and what it gave, as an inventory. The site is never called."""
