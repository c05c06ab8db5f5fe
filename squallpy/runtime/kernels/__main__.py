"""Compiles all kernels into numba's cache, so that no query waits for it: `python -m squallpy.runtime.kernels`."""

from squallpy.runtime.kernels.ready import compile_together

if __name__ == "__main__":
    compile_together()
