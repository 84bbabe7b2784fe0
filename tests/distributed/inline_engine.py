"""An engine without a cluster: everything is pickled, and runs in this process."""

from functools import reduce
from operator import add

import cloudpickle


class InlineEngine:
    """Runs tasks at once; what they get and return goes through pickle, as on the way to other processes."""

    def __init__(self):
        self.names, self._placed = [], {}

    def submit(self, make, *arguments):
        value = _sent(self._run(make, *arguments))
        self._placed[id(value)] = value  # it is there, and need not be sent again
        return value

    def map(self, function, items, *shared):
        return (self._run(function, item, *shared) for item in items)

    def total(self, function, items, *shared, report):
        results = []
        for item in items:
            results.append(self._run(function, item, *shared))
            report(item)
        while len(results) > 1:
            results = [reduce(add, results[start : start + 2]) for start in range(0, len(results), 2)]
        return results[0]

    def fetch(self, handle):
        return handle

    def _run(self, function, *arguments):
        self.names.append(getattr(function, "func", function).__name__)
        function, *arguments = (each if id(each) in self._placed else _sent(each) for each in (function, *arguments))
        return function(*arguments)


def _sent(value):
    return cloudpickle.loads(cloudpickle.dumps(value))
