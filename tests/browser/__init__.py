"""What a person sees, in a real Chromium; one browser and one demo serve the whole folder."""
