"""From the domain's values to the shapes of the wire and back: plain functions, a file per noun."""
