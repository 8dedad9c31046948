"""What names of matrix kernels tell: the type they multiply and the tile each block works on."""

import re

from ingest.vocab import ElementType

_DTYPES: tuple[tuple[ElementType, re.Pattern[str]], ...] = tuple(
    (dtype, re.compile(pattern))
    for dtype, pattern in (
        (ElementType.FP4, r"(?i)fp4|e2m1"),
        (ElementType.FP8, r"(?i)fp8|float8|e4m3|e5m2|nvjet_[qr]|f8f8|_f8[bhs]?|Cijk_\w*_(F8|B8)"),
        (ElementType.INT8, r"(?i)int8|i8816|_s8_|imma|Cijk_\w*_I8"),
        (ElementType.BF16, r"(?i)bf16|bfloat16|nvjet_t|Cijk_\w*?_(BB|B_B)S?_"),
        (
            ElementType.FP16,
            r"(?i)fp16|half|_f16|[^d]884gemm|_h\d+gemm|nvjet_h|Cijk_\w*?_H[HS_]",
        ),
        (ElementType.TF32, r"(?i)tf32|s1688|nvjet_s|xf32|Cijk_\w*_(SX|X)"),
        (ElementType.FP64, r"(?i)dgemm|d884|f64f64|double|Cijk_\w*?_(DB|D_B)_"),
        (ElementType.FP32, r"(?i)sgemm|scudnn|<float|ffma|simt|_f32_sm\d|Cijk_\w*?_(SB|S_B)_"),
    )
)
"""Tried in order: a name of mixed precision has its accumulator's type too (`bf16_s16816gemm`)."""
_TILES = tuple(
    re.compile(pattern)
    for pattern in (
        r"tilesize(\d+)x(\d+)x\d+",
        r"_MT(\d+)x(\d+)x\d+",
        r"nvjet_\w+?_(\d+)x(\d+)_",
        r"gemm_\w*?_?(\d+)x(\d+)_",
        r"_(\d{2,3})x(\d{2,3})_",
    )
)
_SMALLEST_TILE, _LARGEST_TILE = 8, 512


def element_type(name: str) -> ElementType:
    """What a matrix kernel multiplies; UNKNOWN where its name does not say."""
    return next((dtype for dtype, pattern in _DTYPES if pattern.search(name)), ElementType.UNKNOWN)


def tile(name: str) -> tuple[int, int]:
    """Rows and columns of output of one block; zeros where the name does not say."""
    for pattern in _TILES:
        if found := pattern.search(name):
            rows, columns = int(found[1]), int(found[2])
            if all(_SMALLEST_TILE <= size <= _LARGEST_TILE for size in (rows, columns)):
                return rows, columns
    return 0, 0
