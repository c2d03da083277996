"""What this machine has, as `tera host inspect` tells it. Asks the machine itself; no server takes part."""
