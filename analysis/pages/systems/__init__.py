"""Systems side by side: one page of a sweep over variants, with what each system did at the same fault."""
