"""Nights: a suite of runs with budgets, hooks and a verdict."""
