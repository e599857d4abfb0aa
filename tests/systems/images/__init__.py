"""Images: read, unpacked, and run as nodes."""
