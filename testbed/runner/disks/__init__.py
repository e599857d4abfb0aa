"""Disks of processes: their own file systems, and slow ones."""
