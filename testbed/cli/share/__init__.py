"""Commands that pack, fetch and repeat runs."""
