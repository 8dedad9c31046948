"""How late the last of many is: the expected largest of independent times, by their spread.

All members of a collective wait for the last one, so more replicas wait longer although each is as
fast as before. Nominal: times spread as a normal distribution, whose largest of n lies at quantile
(n - 3/8) / (n + 1/4) (Blom 1958, "Statistical Estimates and Transformed Beta-Variables"). The
bounds: the recorded slowest is the slowest of all, and an exponential tail, whose largest of n lies
at the n-th harmonic number (Renyi 1953, "On the theory of order statistics").
"""

import math
from statistics import NormalDist

from whatif.models.bound import Bound

SOURCE = (
    "the spread over replicas is taken for normal; the range goes from no change to an exponential "
    "tail"
)
ASSUMED_SPREAD_FRAC = 0.015
"""Standard deviation of equal work over accelerators where a trace shows one of them alone: over
hundreds of equal GPUs the fastest and the slowest lie 8 % apart, which is about five of it (Sinha
et al. 2022, "Not All GPUs Are Created Equal", SC22). In the upper bound only."""
EULER_GAMMA = 0.5772156649015329


def normal_largest(count: int) -> float:
    """Expected largest of `count` standard normal values: 0 for one, 1.42 for eight."""
    return NormalDist().inv_cdf((count - 0.375) / (count + 0.25))


def exponential_largest(count: int) -> float:
    """The same of exponential values of mean and standard deviation 1, above their mean."""
    harmonic = (
        sum(1.0 / number for number in range(1, count + 1))
        if count < 64  # noqa: PLR2004  (the asymptotic formula is exact to 1e-4 from there)
        else math.log(count) + EULER_GAMMA + 0.5 / count
    )
    return harmonic - 1.0


def later_by(before: int, after: int, bound: Bound) -> float:
    """How much later the last of `after` is than the last of `before`, in standard deviations.

    Negative for fewer. `LOW` is the shortest time, `HIGH` the longest.
    """
    nominal = normal_largest(after) - normal_largest(before)
    if bound is Bound.NOMINAL:
        return nominal
    both = (0.0, nominal, exponential_largest(after) - exponential_largest(before))
    return min(both) if bound is Bound.LOW else max(both)


def wait_ratio(before: int, after: int, bound: Bound) -> float:
    """Mean wait of a member for the last of `after`, over that for the last of `before` (>= 2)."""
    nominal = normal_largest(after) / normal_largest(before)
    if bound is Bound.NOMINAL:
        return nominal
    both = (1.0, nominal, exponential_largest(after) / exponential_largest(before))
    return min(both) if bound is Bound.LOW else max(both)
