"""Recording inside a training process: torch's profiler set up as the analyzer needs it.

`settings` says what is asked, `place` which rank this is and where its file goes, `profiling` makes
the profiler (the only door to torch), `stopwatch` measures steps, `session` leads one recording
from the first step to the file, `head` is what it writes of itself into the file. For programs that
are not to be changed, `launch` starts them with `inject` on their path, whose `sitecustomize` calls
`hooks`; `notes` is what each process tells of itself.

Only the standard library and torch are imported, and modules of this folder by relative names:
where the package is not installed beside the training, it is loaded by its path and under another
name, since `replay` may be a module of the training itself. Works from Python 3.10 on.
"""
