"""Printed triggers (`squallpy/codegen`) made functions: kept on disk, called with pools and Arrow batches.

code_cache    the text of functions → functions, from a folder that only this user may read
functions     what they are given, and what becomes of their answers
"""
