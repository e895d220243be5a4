"""What light says about the fibre: branches that fail, light that decays, and which ONUs share a splitter."""
