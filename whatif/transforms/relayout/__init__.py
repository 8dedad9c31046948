"""Another layout of a recorded run: target shape -> the graph that a run of it would have.

Every what-if about degrees, batches or the model edits a target; the graph is then made anew from
the run as it was before the first of them, so that a change and its reverse leave nothing behind.
`apply.py` is the door; `rebuild.py` the order of the parts: `kernels.py` times of kernels that
change shape, `communication.py` collectives that come, go and change, `programs.py` which rank
runs what in which order, `memory.py` whether it fits, `coverage.py` what the answer rests on.
Kernels: `sizes.py` compares the two shapes, `factors.py` says by which factor a kernel changes by
its place (`grouped.py`: once for all kernels that agree in it), `product_sizes.py` what of a
product, `measured.py` and `operators.py` move the times.
Programs: `columns.py` finds the pipelines of the recorded ranks, `passes.py` what they ran,
`agreement.py` which of them can be trusted; `writer.py` writes the turns of a stage (`turned.py`:
which segments run in a turn, `rows.py`: the columns), with the `messages.py` between them.
Behind them: `settle.py` gives copies of segments the work that they do (`stage_weights.py`: of a
stage's parameters, `work_done.py`: of what kernels compute). `refuse.py` says what cannot be,
`structure.py` what is the same, `network.py` what more ranks need, `offloaded.py` moves the
optimizer.
"""
