"""Sign-up: strangers create their own organisation, if the operator allows it."""
