"""Unattended nights: their runs, budgets, results and notifications."""
