"""Commands on instances, one module per verb: `tera launch`, `ps`, `show`, `ssh`, `exec`, `logs` and others."""
