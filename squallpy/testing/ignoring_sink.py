"""Base of the sinks and observers of tests and benches, which override what they look at."""

from squallpy.runtime.observers.protocol import Observer
from squallpy.runtime.sinks.protocol import NoOutput


class IgnoringSink(NoOutput, Observer):
    """A sink, and an observer, that ignores all that it is given."""
