"""Steps of a grid that are not of the same job are told as such."""

from whatif.report.sweep_text import not_alike


def test_axes_that_change_gpus_or_samples_are_named() -> None:
    assert list(not_alike(["nvlink", "zero"])) == []
    (gpus,) = not_alike(["tp", "nvlink", "pp"])
    assert gpus.startswith("GPUs differ along tp and pp: ")
    gpus, samples = not_alike(["dp"])
    assert gpus.startswith("GPUs differ along dp: ")
    assert samples.startswith("samples of a step differ along dp: ")
