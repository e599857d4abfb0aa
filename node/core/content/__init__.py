"""Events by content: attributes, values, ranges, and how they are drawn."""
