"""The compiler of triggers: a physical plan → the text of numba functions, which do what its feeds and statements do.

    names            what stands for pools, variables and columns in the text
    values           words and texts there, and whether they are NULL
    expressions      scalar expressions over the row at hand: numbers and truth values
    moment_expressions, text_expressions    those of dates and moments, and of texts
    pre_aggregation  a feed's delta: a function over the rows of an Arrow batch; group_code is what it has to be given
    added_rows       how a row is added up there: the record of its key, and sums
    derivations      the delta of an auxiliary relation: a function over the groups that a batch touched
    domains          the groups of which any statement reads rows, those that the view it probes first has
    model_rows       that of the rows of a model: the cells of the cofactor matrices that a batch touched
    extremes         that of the least and greatest values of groups
    statements       a statement: a function over the rows of a delta; statement_code is what it has to be given
    fusion           statements done in the loop of another one, whose first steps they are
    ranges           a statement's lookup in a sorted index: bounds by bisection, records, sums
    products         a statement that multiplies elements of the cofactor ring; lane_products, those of numbers
    imports          the steps of kernels that printed code imports
    program          all of a plan, and what is refused

`squall explain code` prints it. What it does not know it refuses, and the kernels that serve every query do that.
"""
