"""Programs as nodes: a process in the host's namespaces that starts one, minds it, and ends with it."""
