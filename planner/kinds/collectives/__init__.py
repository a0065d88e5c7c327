"""Collectives, one file each: a start-up time and the bytes that leave this chip, one way."""

from planner.kinds.collectives.all_gather import all_gather
from planner.kinds.collectives.all_reduce import all_reduce
from planner.kinds.collectives.all_to_all import all_to_all
from planner.kinds.collectives.point_to_point import point_to_point

__all__ = ["all_gather", "all_reduce", "all_to_all", "point_to_point"]
