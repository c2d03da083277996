"""Programs that run peers on the data we run on, each in the environment of the peers."""
