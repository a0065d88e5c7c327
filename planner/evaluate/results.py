"""What the commands answer: frozen records whose attributes are the keys of the JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Result:
    """Base of all answers."""

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class LayoutAnswer(Result):
    """All keys of a layout, the chips of one replica, how many replicas on how many chips lent, and the text."""

    TP: int
    DP: int
    EP: int
    ETP: int
    PP: int
    DCP: int
    CP: int
    RED: int
    chips: int
    replicas: int
    chips_lent: int
    text: str

    @property
    def placed(self) -> str:
        """'TP8 DP2 EP16 x 4 replicas, 64 chips (8 idle)'."""
        copies = f" x {self.replicas} replicas" if self.replicas > 1 else ""
        idle = self.chips_lent - self.replicas * self.chips
        lent = f"{self.chips_lent} chip{'s' if self.chips_lent > 1 else ''}"
        return f"{self.text}{copies}, {lent}" + (f" ({idle} idle)" if idle else "")


@dataclass(frozen=True)
class Pool(Result):
    """Memory of all chips of the deployment together."""

    capacity_bytes: float
    used_bytes: float


@dataclass(frozen=True)
class Memory(Result):
    """One chip of the stage that fits the fewest requests, and the pool."""

    fits: bool
    binding: str
    policy: str
    capacity_bytes_per_chip: float
    usable_bytes_per_chip: float
    weights_bytes_per_chip: float
    activations_bytes_per_chip: float
    buffers_bytes_per_chip: float
    runtime_bytes_per_chip: float
    kv_budget_bytes_per_chip: float
    kv_bytes_per_token_per_chip: float
    state_bytes_per_sequence_per_chip: float
    request_bytes_per_chip: float
    used_bytes_per_chip: float
    length: int
    max_concurrency: int
    max_tokens: int
    reserved_block_tokens: int
    reserved_bytes_per_request_per_chip: float
    reserved_max_concurrency: int
    pool: Pool


@dataclass(frozen=True)
class Server(Result):
    """One server where every chip holds what one of the fullest stage does: its chips, and their memory together."""

    chips: int
    servers: int
    capacity_bytes: float
    usable_bytes: float
    weights_bytes: float
    requests_bytes: float
    other_bytes: float
    used_bytes: float


@dataclass(frozen=True)
class Fit(Memory):
    """`planner fit`.

    stages: every distinct pipeline stage, the first of those alike; worst_stage: the place of the one that is fullest.
    padding: what kernels and tables add to the weights of one chip of that stage.
    reserved_fits: the load asked for, or one request, is admitted by an engine that reserves whole blocks.
    """

    model: str = ""
    system: str = ""
    stack: str = ""
    layout: LayoutAnswer | None = None
    concurrency: int | None = None
    memory_fraction: float = 0.0
    draft_tokens: int = 0
    reserved_fits: bool = False
    worst_stage: int = 0
    stages: list[dict[str, Any]] = field(default_factory=list)
    server: Server | None = None
    padding: list[dict[str, Any]] = field(default_factory=list)
    min_chips: int | None = None
    min_chips_layout: str | None = None
    max_length: int | None = None
    notes: list[str] = field(default_factory=list)
    violations: list[dict[str, Any]] = field(default_factory=list)
    assumptions: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Prefill(Result):
    """One prompt on an idle system; prompt tokens when nothing but prefill runs."""

    ttft_s: float
    tok_s_per_chip: float


@dataclass(frozen=True)
class Decode(Result):
    """One step at this concurrency; TPOT as served (null where OSL is 1)."""

    step_s: float
    tok_s_per_chip: float
    tpot_s: float | None
    tok_s_per_user: float | None


@dataclass(frozen=True)
class Serving(Result):
    """As served, prefill and decode sharing the chips."""

    ttft_s: float
    e2e_s: float
    tok_s_per_chip: float
    tok_s: float
    requests_per_s: float
    arrivals: str


@dataclass(frozen=True)
class Cost(Result):
    """The bill of all chips lent over each stream of tokens."""

    usd_per_million_output_tokens: float
    usd_per_million_input_tokens: float
    usd_per_million_total_tokens: float


@dataclass(frozen=True, repr=False)
class Estimate(Result):
    """`planner estimate`."""

    model: str
    system: str
    stack: str
    layout: LayoutAnswer
    workload: dict[str, Any]
    concurrency: int
    feasible: bool
    violations: list[dict[str, Any]]
    memory: Memory
    prefill: Prefill
    decode: Decode
    serving: Serving
    cost: Cost
    bounds: dict[str, float]
    breakdown: list[dict[str, Any]]
    range: dict[str, list[float]]
    range_basis: str
    expected_error: dict[str, Any]
    assumptions: list[dict[str, Any]]
    notes: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        tpot = f"{self.decode.tpot_s:.4g} s" if self.decode.tpot_s is not None else "-"
        times = f"TTFT {self.serving.ttft_s:.4g} s, TPOT {tpot}, {self.serving.tok_s_per_chip:.4g} tokens/s per chip"
        return f"<Estimate {self.model} on {self.layout.placed}: {self.concurrency} in flight, {times}>"


@dataclass(frozen=True, repr=False)
class Plan(Result):
    """`planner plan`."""

    model: str
    system: str
    stack: str
    objective: str
    evaluated: int
    feasible: int
    layouts: int
    seconds: float
    setup_seconds: float
    best: Estimate | None
    top: list[Estimate]
    front: list[dict[str, Any]]
    rejected: dict[str, int]
    rejected_sentences: dict[str, str]
    nearest: dict[str, Any] | None
    notes: list[str]

    def __repr__(self) -> str:
        found = f"{self.feasible} of {self.evaluated} points feasible"
        return f"<Plan {self.model} on {self.system}: {found}, best {self.best}>"
