"""Systems side by side: one page of a sweep over variants, with each system's behaviour at the same fault."""
