"""Text → AST: a script is split and its declarations read by a Lark grammar, its SELECTs parsed by sqlglot.

    script.parse_script(text, file)  →  CreateRelation | CreateView | Select, each with its position in the file

Every error names file, line and column of the whole script. `unsupported.py` lists the constructs that are refused.
"""
