"""Images as other tools pack them: read, checked, and unpacked once into a store of this user."""
