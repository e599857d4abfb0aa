"""The run itself: its phases inside the sandbox, and the starting of it from outside."""
