"""The best layouts of a run on given machines."""
