"""From the columns of single files to the run: links, classes, clocks, collectives."""
