"""What OLTs said by themselves."""
