"""Debugging views: messages as lines, the path of one event."""
