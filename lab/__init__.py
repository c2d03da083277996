"""Records the traces of the zoo, measures steps on a GPU and fits the model of time. See lab/README.md."""
