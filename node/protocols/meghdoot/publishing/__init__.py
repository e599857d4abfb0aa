"""Publishers, and how an event spreads over the zones that want it."""
