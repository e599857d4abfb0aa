"""Jobs of sweeps, nights, hunts and studies, in processes of this machine."""
