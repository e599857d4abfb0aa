"""Commands for every night."""
