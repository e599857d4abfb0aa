"""Two or more runs side by side: what was set otherwise, what came out otherwise, and when.

The first run is the one that the others are held against.
"""
