"""Tasks of groups: the edges and sources of a batch that each group has, and what will probably be read for them.

edge 7 → 9 goes; node 7 has groups 3, 5       →   groups 3, 5, each with the task 7 → 9; behind it are 9 and its targets
"""

from typing import Final

import numpy as np

from squallpy.runtime.kernels.arena_tables import block_of, line_of, places_of
from squallpy.runtime.kernels.grouped_entries import GROUPS, LISTS, MEMBERS, NODES, ROWS, STEPS, kind_of, targets_of
from squallpy.runtime.kernels.grouped_members import entries_of, log_of
from squallpy.runtime.kernels.intrinsics import load32, prefetch
from squallpy.runtime.kernels.kernel_compiler import GIVEN_MATRIX, VECTOR, Vector, inlined, kernel
from squallpy.runtime.kernels.memory_regions import Words

_CONE: Final = 256  # nodes behind one, for whose entries is asked in advance,
_CONES: Final = 4  # and of all tasks, for each


@kernel(
    f"Tuple(({VECTOR}, {VECTOR}, {VECTOR}, {VECTOR}, {VECTOR}))({VECTOR}, {GIVEN_MATRIX}, {GIVEN_MATRIX}, {VECTOR},"
    f" {VECTOR}, {VECTOR}, {VECTOR})"
)
def list_tasks(
    frame: Vector, sources: Vector, edges: Vector, marks: Vector, counts: Vector, cone_of: Vector, seen: Vector
) -> tuple[Words, Words, Words, Words, Words]:
    """List the groups that a batch changes, in the order in which that is found, and the tasks of each.

    Returned are the groups, where the tasks of each begin, the tasks, the nodes behind each edge, and where they begin.
    A task is the number of an edge, or the complement of that of a source.

    Args:
        sources: Group, node, and how many derivations come in iteration 1.
        edges: Node, node, and how many derivations come of it where the first is.
        marks: Zero for each group; and `counts`; `cone_of` and `seen` for each node.
    """
    n, m, lists, members = sources.shape[0], edges.shape[0], frame[LISTS], frame[MEMBERS]
    total = n
    for e in range(m):
        total += entries_of(lists + 16 * edges[e, 0])
    order, found = np.empty(total, np.int64), np.empty(2 * total, np.int64)
    count, task = 0, 0
    for e in range(m + n):
        if e < m:
            head = lists + 16 * edges[e, 0]
            log, places = log_of(head, members), entries_of(head)
        else:
            log, places = 0, 1
        for i in range(places - 1, -1, -1):
            if e < m:
                group, is_member = load32(log, i) >> 1, load32(log, i) & 1 == 0
                is_member &= marks[group] != e + 1
                marks[group] = e + 1
            else:
                group, is_member = sources[e - m, 0], True
            if is_member:
                if counts[group] == 0:
                    order[count] = group
                    count += 1
                counts[group] += 1
                found[2 * task], found[2 * task + 1] = group, e if e < m else ~(e - m)
                task += 1
    starts, tasks, end = np.empty(count + 1, np.int64), np.empty(task, np.int64), 0
    for k in range(count):
        group = order[k]
        starts[k] = end
        end, counts[group] = end + counts[group], end
    starts[count] = end
    for i in range(task):
        group = found[2 * i]
        tasks[counts[group]] = found[2 * i + 1]
        counts[group] += 1
    cones, begins, end = np.empty(_CONES * task + _CONE, np.int64), np.zeros(m + n + 1, np.int64), 0
    for e in range(m + n):
        begins[e] = start = end
        first = edges[e, 1] if e < m else sources[e - m, 1]
        if end < _CONES * task and cone_of[first] == 0:
            cone_of[first], cones[end], seen[first] = e + 1, first, e + 1
            end += 1
            done = start
            while done < end < start + _CONE:
                head = frame[NODES] + 16 * cones[done]
                targets = targets_of(head, frame[STEPS])
                for i in range(load32(head, 0) >> 1):
                    node = load32(targets, i)
                    if seen[node] != e + 1 and end < start + _CONE:
                        seen[node] = e + 1
                        cones[end] = node
                        end += 1
                done += 1
    begins[m + n] = end
    return order[:count], starts, tasks, cones[:end], begins


@inlined
def ask_table(
    frame: Vector,
    group: int,
    start: int,
    stop: int,
    tasks: Vector,
    sources: Vector,
    edges: Vector,
    cone_of: Vector,
    cones: Vector,
    begins: Vector,
) -> None:
    """Ask for the cache lines of a group's table that its tasks will probably need."""
    head = frame[GROUPS] + 16 * group
    kind = kind_of(head)
    places, table = places_of(head, kind), block_of(head, frame[ROWS])
    if places == 0:
        return
    for task in range(start, stop):
        edge = tasks[task]
        if edge >= 0:
            prefetch(line_of(table, places, edges[edge, 0] + 1, kind))
        cone = cone_of[edges[edge, 1] if edge >= 0 else sources[~edge, 1]] - 1
        if cone >= 0:
            for i in range(begins[cone], begins[cone + 1]):
                prefetch(line_of(table, places, cones[i] + 1, kind))
