"""B+-tree under sorted indexes: rows in the order of their keys, and for each subtree the sum of its payloads.

    entry   key | payload | least, greatest prefix sum of the subtree, or its greatest height (if wanted) | child
    node    FANOUT entries side by side; beside them a header: count, level (0: leaf), neighbours on its level

An inner entry's key is a lower bound of its child's (for the first child: of nothing); its payload is the child's sum,
so the sum of any range is found along two paths, and so are the greatest height, which is one of the words of a key,
and the next record that is as high. All leaves are on one level. Keys are rows of signed words.

    nodes       layout, headers, entries                summaries   sums, prefix-sum extents, heights of a subtree
    search      where a key goes in a node              lookup      records of ranges, entries of subtrees
    update      upserts, splits and merges              folds       sums and other folds of ranges
                                                        heights     the highest record of a range, the next as high

Source: Bayer, McCreight (1972), split on the way down; sums as in order-statistic trees, heights as in priority search
trees (McCreight, 1985).
"""
