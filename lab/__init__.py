"""Scripts that record the zoo's traces and fit the model of time. Not part of the package."""
