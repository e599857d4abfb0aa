"""Places where a plan can be carried out other than the sandbox on this machine."""
