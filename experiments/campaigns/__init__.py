"""Many runs: sweeps, nights and studies, and their directories."""
