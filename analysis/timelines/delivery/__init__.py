"""Deliveries: what each client got, what it had to get, and what was lost, repeated or out of order."""
