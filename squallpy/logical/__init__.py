"""The logical plan: typed expressions and relational nodes, and the binder that makes them from the AST."""
