"""The software of a run on its machines: our code, programs, and what they need."""
