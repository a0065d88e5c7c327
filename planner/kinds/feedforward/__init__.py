"""Feed-forward kinds, one file each. To add one: a file here and its name in this list and in the union."""

from typing import Annotated

from pydantic import Field

from planner.kinds.feedforward import dense, moe, none
from planner.kinds.feedforward.dense import Dense
from planner.kinds.feedforward.kind import FeedForwardKind
from planner.kinds.feedforward.moe import Moe
from planner.kinds.feedforward.none import NoFeedForward

FEED_FORWARD: dict[str, FeedForwardKind] = {"dense": dense.KIND, "moe": moe.KIND, "none": none.KIND}
FeedForward = Annotated[Dense | Moe | NoFeedForward, Field(discriminator="kind")]
