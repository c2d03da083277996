"""Sites: the engines and cloud accounts of a server, who may use them, and whether they answer."""
