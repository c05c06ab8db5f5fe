"""Compiles kernels into numba's cache: `python -m squallpy.runtime.kernels [common]`, by default all that it lacks."""

import sys

from squallpy.runtime.kernels.kernel_precompilation import COMMON, compile_together

if __name__ == "__main__":
    compile_together(COMMON if sys.argv[1:] == ["common"] else ())
