"""Programs as nodes: a process in the host's namespaces that starts a program, supervises it, and ends with
it.
"""
