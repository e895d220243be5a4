"""What Facho decides, how it talks SNMP, and what it knows of vendors; free of any framework."""
