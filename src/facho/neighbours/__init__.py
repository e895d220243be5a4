"""What other systems of the provider exchange with Facho: inventory, billing, graphs, tickets."""
