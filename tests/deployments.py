"""Deployments that between them take every branch of the formulas, for the tests that hold for any deployment."""

from dataclasses import dataclass, field
from typing import Any

from planner.evaluate.case import Point, case_of, point_of
from planner.evaluate.inputs import Case
from planner.layout import Layout
from planner.record import Figure
from planner.specs.library import load_model, load_stack, load_system
from planner.specs.workload import Workload

K3, LINEAR = "kimi-k3", "kimi-linear-48b-a3b"
SUPERNODE = "zhenwu-m890-supernode"
SHORT = {"isl": 1000, "osl": 200, "concurrency": 20}


@dataclass(frozen=True)
class Deployment:
    """One deployment; the `*_changes` replace fields of the shipped records, to reach what no shipped one has."""

    name: str
    layout: str
    model: str = K3
    chips: int | None = None
    stack: str | None = None
    ask: dict[str, Any] = field(default_factory=dict)
    model_changes: dict[str, Any] = field(default_factory=dict)
    system_changes: dict[str, Any] = field(default_factory=dict)
    stack_changes: dict[str, Any] = field(default_factory=dict)

    @property
    def workload(self) -> Workload:
        return Workload(**{"isl": 8192, "osl": 1024, "concurrency": 200, **self.ask})

    @property
    def case(self) -> Case:
        model = load_model(self.model).model_copy(update=self.model_changes)
        system = load_system(SUPERNODE).model_copy(update=self.system_changes)
        stack = load_stack(self.stack or system.stack).model_copy(update=self.stack_changes)
        return case_of(model, system, stack)

    @property
    def parsed(self) -> Layout:
        return Layout.parse(self.layout, self.case.model)

    @property
    def lent(self) -> int:
        return self.chips or self.parsed.chips

    @property
    def point(self) -> Point:
        return point_of(self.case, self.parsed, self.workload, self.lent // self.parsed.chips, self.lent)


def figure(old: Figure, value: float) -> Figure:
    """The same figure with another value."""
    return old.model_copy(update={"value": value, "low": value, "high": value})


def every_term() -> dict[str, Any]:
    """Changes that give every term of a stack a weight: what is 0 in a shipped stack would hide a wrong formula."""
    stack = load_stack("sail-tuned")
    kernels = {}
    for name in type(stack.kernels).model_fields:
        kernel = getattr(stack.kernels, name)
        changes = {"added": figure(kernel.added, 3e-6), "traffic": figure(kernel.traffic, 1.5)}
        per_row = ("row_time", "expert_time")
        changes |= {key: figure(getattr(kernel, key), 1e-9) for key in per_row if hasattr(kernel, key)}
        kernels[name] = kernel.model_copy(update={**changes, "floor": figure(kernel.floor, 5e-6)})
    return {
        "kernels": stack.kernels.model_copy(update=kernels),
        "overlap": figure(stack.overlap, 0.4),
        "request_time": figure(stack.request_time, 1e-4),
        "one_copy_per_rank": True,
    }


DEPLOYMENTS = [
    Deployment("plain", "TP8 DP8 EP64"),
    Deployment("dp1", "TP32", ask={"concurrency": 7}),
    Deployment("tp1", "DP64"),
    Deployment("pp2", "TP8 DP4 PP2"),
    Deployment("pp7", "TP8 PP7", ask={"concurrency": 3}),
    Deployment("etp2", "TP8 DP8 EP32 ETP2"),
    Deployment("dcp", "TP8 DP8 DCP4"),
    Deployment("cp", "TP8 DP4 CP2"),
    Deployment("cp-dcp-pp", "TP4 DP2 CP2 DCP2 PP4", ask={"isl": 131072, "concurrency": 20}),
    Deployment("redundant", "TP3 DP16"),
    Deployment("redundant-given", "TP8 DP8 EP64 RED64"),
    Deployment("replicas", "TP4 DP2", model=LINEAR, chips=64),
    Deployment("idle-chips", "TP2 DP3 EP6", model=LINEAR, chips=64, ask={"concurrency": 1111}),
    Deployment("one-chip", "TP1", model=LINEAR, ask={"concurrency": 4}),
    Deployment("linear-pp", "TP2 DP2 PP4", model=LINEAR, ask={"concurrency": 37}),
    Deployment("waves", "TP8 DP8", ask={"arrivals": "waves"}),
    Deployment("speculation", "TP8 DP8", ask={"draft_tokens": 3, "accepted_length": 2.5}),
    Deployment(
        "own-draft",
        "TP4 DP2 PP2",
        model="nemotron-3-super-120b-a12b",
        ask={**SHORT, "draft_tokens": 2, "accepted_length": 1.8},
    ),
    Deployment(
        "own-draft-windows", "TP4 DP2", model="step-3.7-flash", ask={**SHORT, "draft_tokens": 3, "accepted_length": 2}
    ),
    Deployment("prefix-hit", "TP8 DP8", ask={"prefix_hit": 0.6, "isl": 100_000, "chunk": 5000}),
    Deployment("short-prompts", "TP8 DP8", ask={"isl": 100, "osl": 3000}),
    Deployment("one-token", "TP8 DP8", ask={"osl": 1}),
    Deployment("fp8-cache", "TP8 DP8", ask={"kv_format": "fp8", "state_format": "bf16", "isl": 500_000}),
    Deployment("vision", "TP16 DP2 PP2", ask={"vision": True}),
    Deployment("skew", "TP8 DP8", ask={"routing_skew": 1.7, "memory_fraction": 0.8}),
    Deployment("migration", "TP8 DP4 PP2", stack="sail-migration"),
    Deployment("one-copy", "TP8 DP8", stack_changes={"one_copy_per_rank": True}),
    Deployment("gather", "TP2 DP8 EP16", stack_changes={"exchange": "gather"}),
    Deployment("every-term", "TP8 DP4 PP2", stack_changes=every_term()),
    Deployment("two-domains", "TP16 DP2 PP2", system_changes={"domain_chips": 8}),
    Deployment("domain-of-24", "TP2 DP16 CP2", system_changes={"domain_chips": 24}),
    Deployment("tied", "TP2 DP2 PP2", model=LINEAR, model_changes={"tied_embeddings": True}),
    Deployment("window-and-sinks", "TP2 DP2", model="gpt-oss-20b", ask=SHORT),
    Deployment("gated-delta", "TP2 DP4 EP8", model="qwen3-next-80b-a3b", ask=SHORT),
    Deployment("lightning", "TP8 DP2", model="minimax-m1", ask=SHORT),
    Deployment("mamba1", "TP2 DP2 PP2", model="jamba-1.5-mini", ask=SHORT),
    Deployment("mamba2-and-none", "TP2 DP2", model="nemotron-3-nano-30b-a3b", ask=SHORT),
    Deployment("sparse-mla", "TP8 DP2 DCP2", model="glm-5.2", ask={"isl": 6000, "osl": 200, "concurrency": 20}),
    Deployment("compressed-and-hyper", "TP2 DP4 EP8", model="deepseek-v4-flash", ask={**SHORT, "kv_format": "fp8"}),
    Deployment("block-sparse", "TP4 DP2 CP2", model="minimax-m3", ask={"isl": 6000, "osl": 200, "concurrency": 20}),
]
NAMES = [deployment.name for deployment in DEPLOYMENTS]
