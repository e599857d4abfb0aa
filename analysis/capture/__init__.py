"""From capture files to packets, with times by the run's reference clock."""
