"""Hunts: many random cases, in virtual time on all processors or on real processes, guided by new behaviour,
and the findings.
"""
