"""Commands that make inputs."""
