"""A table of measured figures as records: one row, one figure, or the reason why it is none.

Columns, in any order: id, model, hardware, n_chips, framework, phase, metric, value, unit must be there; what a blank
or missing one of the others means:

    weight_precision   as shipped                        pp            1; so is tp of one chip
    kv_precision       16 bits, as engines default; `unstated` beside FP8 or NVFP4 weights of a model in
                       `cache_follows_weights`: FP8              dp_attn       chips / (TP x PP)
    ep                 as large as the model allows      osl           1: the context is ISL alone
    speculative        none                              quality       B
    source_group       the source, else the file         concurrency_or_batch   one request at `prefill`, else refused

`ep` 1 beside a larger TP slices the experts over TP. Lengths "drawn uniformly in 0.8..1.0" count 0.9 of what the row
says. Requests that all start together (fixed lengths) come in waves, drawn lengths are steady. Of a mean in flight that
is given, the mean counts. Words of `concurrency_or_batch`: `N global`, `N per-chip`, `N tokens per-chip`, `offline max
load`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from planner.errors import PlannerError, nearest
from planner.evidence.csv_file import MORE, records
from planner.evidence.measurement import METRICS, Measurement
from planner.evidence.names import machine, model_name, stack_name, table, weights_name

NEEDED = ("id", "model", "hardware", "n_chips", "framework", "phase", "metric", "value", "unit")
KNOWN = (
    *NEEDED, "source", "source_group", "date", "params_note", "weight_precision", "kv_precision", "compute_precision",
    "tp", "ep", "dp_attn", "pp", "dcp", "disaggregated", "isl", "osl", "concurrency_or_batch", "prefix_cache_hit",
    "speculative", "stack", "note", "quality", "split", "arch_key", "arrivals",
)  # fmt: skip
PHASES = {"agg": "served", "served": "served", "prefill": "prefill", "decode": "decode"}
PLAIN = re.compile(r"^([+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?)([kKM]?)$", re.ASCII)
WORDED = re.compile(r"^(?:mean KV length |~)?(\d+(?:\.\d+)?)()(?: mean(?: \(.*\))?| \(assumed\))?$", re.ASCII)
LOADED = re.compile(r"^~?(\d{1,9})(?: (global|per-chip|tokens per-chip|tokens per-die)(?:[ ,].*)?)?$", re.ASCII)
THOUSANDS = {"k": 1024, "K": 1024, "M": 1024**2}
LARGEST = 1e12
MOST_REQUESTS = 10_000_000
CACHES = {"fp8": "fp8", "bf16": "bf16", "fp16": "bf16", "auto": "bf16", "": "bf16", "-": "bf16", "int8": "int8",
          "nvfp4": "nvfp4", "unstated": "", "not stated": ""}  # fmt: skip
"""Precisions of a cache by the first words of a cell; empty: what the checkpoint asks for, if it does."""
YES = ("y", "yes", "true")
NO = ("", "n", "no", "false", "-")
DRAWN = 0.9
"""Mean over the nominal length of lengths drawn uniformly from 0.8 to 1.0 of it."""
EXCHANGE = ("dispatch_us", "combine_us")
FITTED = ("fit_intercept_ms", "fit_slope_ms_per_token")


class Skip(Exception):
    """Why a row is no figure this planner can price."""


@dataclass
class Table:
    """What was read: figures, and the rows left out with their reasons."""

    rows: list[Measurement] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)


def read_table(path: Path) -> Table:
    """The figures of a CSV file. Raises BadFile where no row can be read at all."""
    found, seen = Table(), set[str]()
    for line, row in records(path, NEEDED, KNOWN):
        name = row.get("id", "").strip() or f"line {line}"
        if name in seen:
            found.skipped[f"{name} (line {line})"] = "the id is given twice"
            continue
        seen.add(name)
        try:
            found.rows.append(figure(row, path.stem))
        except Skip as reason:
            found.skipped[name] = str(reason)
        except PlannerError as error:
            found.skipped[name] = error.told
    return found


def figure(cell: dict[str, str], group: str) -> Measurement:
    """One row as a figure. Raises Skip with the reason, or UnknownName."""
    metric, phase = metric_of(cell), phase_of(cell)
    host = machine(cell["hardware"])
    model = model_name(cell["model"], cell.get("arch_key", ""))
    chips = whole(cell, "n_chips") * host.ranks
    tp, pp = whole(cell, "tp", 1 if chips == 1 else None), whole(cell, "pp", 1)
    dp = whole(cell, "dp_attn", max(chips // (tp * pp), 1))
    note = cell.get("note", "")
    length = DRAWN if "0.8..1.0" in note else 1.0
    if metric in FITTED and phase != "decode":
        raise Skip(f"{metric} is of decode")
    if metric in (*FITTED, *EXCHANGE):
        isl = osl = 1
    else:
        isl = max(round(whole(cell, "isl") * length), 1)
        osl = 1 if phase == "prefill" else max(round(whole(cell, "osl", 1) * length), 1)
    drafts, accepted = speculation(cell)
    requests, tokens, most = load(cell, phase, host.ranks, chips)
    per_rank = host.ranks if metric.endswith(("_per_chip", "_per_node")) else 1
    apart = cell.get("disaggregated", "").lower()
    if apart not in (*YES, *NO):
        raise Skip(f"disaggregated {apart!r} is neither y nor n")
    pools = apart in YES and phase == "served"
    if cell.get("prefix_cache_hit", "none") not in ("", "none", "0", "excluded", "-"):
        raise Skip("prompts found in a prefix cache are not priced here")
    fields = {
        "id": cell["id"],
        "source": cell.get("source_group") or cell.get("source") or group,
        "model": model,
        "weights": weights_name(cell.get("weight_precision", ""), model),
        "kv_format": cache_format(cell, model),
        "system": host.system,
        "stack": cell.get("stack") or stack_name(cell["framework"], host.system, cell.get("date", "")),
        "chips": tp * dp * pp if pools else chips,
        "counted": chips if pools else None,
        "tp": tp,
        "dp": dp,
        "ep": None if cell.get("ep", "") in ("", "not stated") else whole(cell, "ep", 1),
        "pp": pp,
        "dcp": whole(cell, "dcp", 8 if "DCP8" in note else 1),
        "phase": "decode" if pools else phase,
        "arrivals": arrivals(cell, note),
        "isl": isl,
        "osl": osl,
        "requests": requests,
        "most": most,
        "tokens": tokens,
        "overlap": hidden(cell, note),
        "drafts": drafts,
        "accepted": accepted,
        "metric": metric,
        "value": number(cell, "value") / per_rank,
        "grade": cell.get("quality") or "B",
        "note": note,
    }
    try:
        return Measurement.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise Skip(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def metric_of(cell: dict[str, str]) -> str:
    """The metric, its unit checked."""
    if MORE in cell:
        raise Skip("more cells than columns: a number with a comma needs quotes")
    for name in NEEDED:
        if not cell[name]:
            raise Skip(f"{name} is blank")
    metric, unit = cell["metric"], cell["unit"]
    if metric not in METRICS:
        raise Skip(f"unknown metric {metric!r}; {nearest(metric, METRICS)}")
    if unit != METRICS[metric].unit:
        raise Skip(f"{metric} in {unit!r}; it is given in {METRICS[metric].unit}")
    if number(cell, "value") <= 0:
        raise Skip(f"value {cell['value']} is not above 0")
    return metric


def phase_of(cell: dict[str, str]) -> str:
    """The phase by the planner's name."""
    if cell["phase"] not in PHASES:
        raise Skip(f"unknown phase {cell['phase']!r}; use agg, prefill or decode")
    return PHASES[cell["phase"]]


def number(cell: dict[str, str], name: str, blank: float | None = None) -> float:
    """A cell's number: plain, in thousands (8k), or with the words of WORDED around it."""
    text = cell.get(name, "")
    if not text and blank is not None:
        return blank
    if not text:
        raise Skip(f"{name} is not known (blank)")
    match = WORDED.match(text) or PLAIN.match(text)
    if match is None:
        raise Skip(f"{name} is not a plain number ({text})")
    found = float(match[1]) * THOUSANDS.get(match[2] or "", 1)
    if not -LARGEST < found < LARGEST or 0 < abs(found) < 1 / LARGEST:
        raise Skip(f"{name} {text} is not a usable number")
    return found


def whole(cell: dict[str, str], name: str, blank: int | None = None) -> int:
    """A whole number above 0."""
    found = number(cell, name, blank)
    if found < 1 or found != int(found):
        raise Skip(f"{name} {cell.get(name)} is not a whole number from 1")
    return int(found)


def cache_format(cell: dict[str, str], model: str) -> str:
    """Precision of the KV cache."""
    text = cell.get("kv_precision", "").lower()
    known = text if text in CACHES else re.split(r"[ (_]", text)[0]
    if known not in CACHES:
        raise Skip(f"unknown cache precision {text!r}; use fp8, bf16, int8 or nvfp4")
    if CACHES[known]:
        return CACHES[known]
    quantised = cell.get("weight_precision", "").startswith(("FP8", "NVFP4"))
    asked = model.startswith(tuple(table()["cache_follows_weights"]))
    return "fp8" if quantised and asked else "bf16"


def speculation(cell: dict[str, str]) -> tuple[int, float]:
    """(drafts verified, tokens gained) per step."""
    text = cell.get("speculative", "none") or "none"
    if text == "none":
        return 0, 1.0
    gained = re.search(r"accepted length (\d+(?:\.\d+)?)(?:-(\d+(?:\.\d+)?))?", text)
    gained = gained or re.search(r"acceptance length simulated (\d+(?:\.\d+)?)()", cell.get("note", ""))
    if gained is None:
        raise Skip(f"speculation without an accepted length ({text})")
    accepted = (float(gained[1]) + float(gained[2] or gained[1])) / 2
    drafted = re.search(r"K=(\d+)|(\d+) (?:step|token)|MTP(\d)", text)
    count = int(next(part for part in drafted.groups() if part)) if drafted else default_drafts(text)
    if not 1 <= accepted <= count + 1:
        raise Skip(f"{accepted:g} tokens a step cannot come of {count} drafts ({text})")
    return count, accepted


def default_drafts(text: str) -> int:
    """Drafts of a step where a row does not say: seven of DSpark's block of eight, else the three of EAGLE and MTP."""
    return 7 if text.upper().startswith("DSPARK") else 3


def load(cell: dict[str, str], phase: str, ranks: int, chips: int) -> tuple[int | None, int | None, bool]:
    """(requests in flight, tokens of a pass, as many as fit)."""
    text = cell.get("concurrency_or_batch", "")
    if "max load" in text or "sent at once" in text or "saturated" in text:
        return None, None, True
    if text in ("", "not stated") and phase == "prefill":
        return None, None, False
    match = LOADED.match(text)
    if match is None:
        raise Skip(f"the load is not known ({text or 'blank'})")
    count = float(match[1])
    if not 1 <= count <= MOST_REQUESTS:
        raise Skip(f"a load of {match[1]} is not from 1 to {MOST_REQUESTS:,}")
    if "tokens per-" in text:
        each = count / (ranks if "per-chip" in text else 1)
        return (round(each * chips), None, False) if phase == "decode" else (None, round(each), False)
    if "per-chip" in text:
        return round(count * chips / ranks), None, False
    mean = re.search(r"mean in flight (\d+(?:\.\d+)?)", text)
    return max(round(float(mean[1]) if mean else count), 1), None, False


TWO_BATCHES = re.compile(r"TBO|DBO|two micro-batches")


def hidden(cell: dict[str, str], note: str) -> float | None:
    """What two batches hide where the row says that they are interleaved."""
    said = f"{cell['framework']} {note}"
    if not TWO_BATCHES.search(said) or "TBO off" in said or "overlap off" in said:
        return None
    return float(table()["two_batches"])


def arrivals(cell: dict[str, str], note: str) -> str:
    """Waves where all start together on fixed lengths, else steady."""
    return cell.get("arrivals") or ("steady" if "uniform" in note else "waves")
