"""What people debug with: messages as lines, the way of one event, space-time diagrams."""
