"""Matrices in blocks on partitions, one superstep a stage.

The driver decides on each batch (`block_stage`); its `commands` go to the partitions, each of which runs supersteps on
its blocks (`partition`, `superstep`), with a `superstep_state` in a message to itself between two of them.
"""
