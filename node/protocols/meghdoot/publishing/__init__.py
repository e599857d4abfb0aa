"""Publishers, and the propagation of events over the zones that they affect."""
