"""From files of captures to packets, and whose clock their times are."""
