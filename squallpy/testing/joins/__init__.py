"""The adaptive join, simulated: the operator of `physical/joins` with its messages in any order.

join_operators     SHJ, StaticMid, StaticOpt, Dynamic and Hybrid behind one interface
migration_protocol epochs: which tuples meet while a migration runs, each pair once, where no batch synchronises joiners
streams            tuples of both relations in their order: random, in bursts, with deletes
network            tasks and channels between them: first in, first out; which channel is next is drawn
simulator          reshufflers, controllers and joiners; each pair is checked to come out once
load_trace         sizes alone, tuple by tuple: load against the best, cost of migrations, for any number of joiners
"""

from squallpy.testing.joins.load_trace import Trace, trace
from squallpy.testing.joins.simulator import Simulation, Violation
from squallpy.testing.joins.streams import Stream, bursts, fluctuating, random_stream, zipf_keys

__all__ = ["Simulation", "Stream", "Trace", "Violation", "bursts", "fluctuating", "random_stream", "trace", "zipf_keys"]
