"""One rule per file: each finds one kind of dependency in the recorded run."""
