"""Parts of a layer as plain dicts, their formats looked up by the paths of their modules.

A weight group of a kind is made of one or more modules; all must have one format, else nothing here can hold it.
"""

from __future__ import annotations

from typing import Any

from planner.errors import BadSpec
from planner.specs.huggingface.config import Config
from planner.specs.huggingface.network import Part
from planner.specs.huggingface.quantization import Quantization

LINEAR = ("gate_proj", "up_proj", "down_proj")
Modules = dict[str, str | tuple[str, ...]]
NONE: Part = {"kind": "none"}
DEFAULTS = {"gated": True, "shared_gate": False, "expert_bias": False, "latent_norm": True}
"""What a record of experts takes where a field is left out."""


def formats(config: Config, quant: Quantization, path: str, modules: Modules) -> tuple[str, dict[str, str]]:
    """(format of most groups, overrides of the rest). modules: group -> its modules below `path`. Raises BadSpec."""
    found: dict[str, str] = {}
    for group, names in modules.items():
        each = {quant.format(f"{path}.{name}") for name in ((names,) if isinstance(names, str) else names)}
        if len(each) > 1:
            raise BadSpec(
                config.where,
                f"{path}: {group} is stored as {' and '.join(sorted(each))}",
                "one format for all of it is what this planner holds",
            )
        found[group] = each.pop()
    values = list(found.values())
    common = max(dict.fromkeys(values), key=values.count)
    return common, {group: format for group, format in found.items() if format != common}


def part(kind: str, chosen: tuple[str, dict[str, str]], vectors: str, **sizes: Any) -> Part:
    """One part of a layer."""
    format, overrides = chosen
    found: Part = {"kind": kind, "format": format, "vector_format": vectors, **sizes}
    return {**found, "overrides": overrides} if overrides else found


def head_dim(config: Config, heads: int, *keys: str) -> int:
    """The width of a head: its own key, else its class's, where null is the width over the heads. Raises BadSpec."""
    own = config.count_or_null(*(keys or ("head_dim", "attention_head_dim")))
    if own is not None:
        return own
    width = config.count("hidden_size")
    if width % heads:
        raise config.wrong(
            "num_attention_heads", f"{heads} does not divide hidden_size {width}, and no head_dim is given"
        )
    return width // heads


def gqa(
    config: Config, quant: Quantization, path: str, *, heads: int | None = None, kv_heads: int | None = None,
    dim: int | None = None, value_dim: int | None = None, window: int | None = None, **rest: Any,
) -> Part:  # fmt: skip
    """Grouped-query attention below a path such as 'model.layers.0.self_attn'; sizes by their usual keys."""
    heads = heads or config.count("num_attention_heads")
    kv_heads = kv_heads or config.count_or_null("num_key_value_heads", "num_attention_groups") or heads
    if heads % kv_heads:
        raise config.wrong("num_key_value_heads", f"{kv_heads} does not divide the {heads} query heads")
    dim = dim or head_dim(config, heads)
    modules: Modules = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "output": "o_proj"}
    if rest.get("shares_keys"):
        del modules["v"]
    if rest.get("output_gate") == "elementwise":
        modules["output_gate"] = "q_proj"
    elif rest.get("output_gate") == "headwise":
        modules["output_gate"] = "g_proj"
    given = {key: value for key, value in rest.items() if value not in (None, False)}
    if window is not None:
        given["window"] = window
    chosen = formats(config, quant, path, modules)
    return part(
        "gqa", chosen, quant.plain, heads=heads, kv_heads=kv_heads, head_dim=dim, value_dim=value_dim or dim, **given
    )


def dense(
    config: Config, quant: Quantization, path: str, inner: int, *, gated: bool = True, bias: bool = False,
    names: tuple[str, ...] | None = None,
) -> Part:  # fmt: skip
    """A dense feed-forward below a path such as 'model.layers.0.mlp'."""
    chosen = formats(config, quant, path, {"matrices": names or (LINEAR if gated else LINEAR[1:])})
    given = {} if gated else {"gated": False}
    return part("dense", chosen, quant.plain, inner=inner, **given, **({"bias": True} if bias else {}))


def moe(
    config: Config, quant: Quantization, path: str, *, experts: int, top_k: int, inner: int,
    shared_inner: int | None = None, latent: int | None = None, router_bias: bool = False, router: str = "gate",
    names: tuple[str, ...] | None = None, shared: str = "shared_experts", shared_names: tuple[str, ...] | None = None,
    experts_path: str = "experts", each: bool = True, vectors: str | None = None,
    latent_names: tuple[str, str] | None = None, **rest: Any,
) -> Part:  # fmt: skip
    """Experts below a path such as 'model.layers.3.mlp'.

    names: an expert's matrices; each: experts are modules of their own ('experts.0.up_proj'), not one ('experts').
    latent_names: projections into and out of the latent; None where no scheme quantises them, whatever its list says.
    """
    names = names or (LINEAR if rest.get("gated", True) else LINEAR[1:])
    first_and_last = (0, experts - 1) if each else ("",)
    picked = tuple(
        f"{experts_path}.{which}.{name}" if each else f"{experts_path}.{name}"
        for which in first_and_last
        for name in names
    )
    own, _ = formats(config, quant, path, {"routed experts": picked})
    modules: Modules = {}
    if shared_inner:
        modules["shared"] = tuple(f"{shared}.{name}" for name in (shared_names or names))
    if latent and latent_names:
        modules |= {"latent_down": latent_names[0], "latent_up": latent_names[1]}
    modules["router"] = router
    if rest.get("shared_gate"):
        modules["shared_gate"] = "shared_expert_gate"
    format, overrides = formats(config, quant, path, modules)
    if latent and format != quant.plain:
        kept = ["latent_norm"] if rest.get("latent_norm", True) else []
        overrides |= dict.fromkeys(kept if latent_names else [*kept, "latent_down", "latent_up"], quant.plain)
    given = {key: value for key, value in rest.items() if value is not None and value != DEFAULTS.get(key)}
    return part(
        "moe", (format, overrides), vectors or ("fp32" if router_bias else quant.plain), experts=experts, top_k=top_k,
        inner=inner, latent=latent, shared_inner=shared_inner or None, router_bias=router_bias,
        routed_format=own, **given,
    )  # fmt: skip


EXPERTS = ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")
TOP_K = ("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "top_k_experts", "moe_top_k", "moe_topk")
INNER = ("moe_intermediate_size", "expert_intermediate_size")


def routed(config: Config, *inner: str) -> dict[str, Any]:
    """experts, top_k and inner by any of their names. inner: other names of the experts' width. Raises BadSpec."""
    return {
        "experts": config.count(*EXPERTS),
        "top_k": config.count(*TOP_K),
        "inner": config.count(*(INNER if config.key(*INNER) else (*INNER, *inner))),
    }


def mla(config: Config, quant: Quantization, path: str, *, output_gate: bool = False) -> Part:
    """Latent attention below a path such as 'model.layers.0.self_attn'."""
    rank = config.count_or_null("q_lora_rank")
    modules: Modules = {"q": "q_proj"} if rank is None else {"q_a": "q_a_proj", "q_b": "q_b_proj"}
    modules |= {"kv_a": "kv_a_proj_with_mqa", "kv_b": "kv_b_proj", "output": "o_proj"}
    if output_gate:
        modules["output_gate"] = "g_proj"
    return part("mla", formats(config, quant, path, modules), quant.plain, **mla_sizes(config), output_gate=output_gate)


def mla_sizes(config: Config) -> dict[str, Any]:
    """Heads, ranks and widths of latent attention. `head_dim` in such configs means other things and is not read."""
    return {
        "heads": config.count("num_attention_heads"),
        "q_rank": config.count_or_null("q_lora_rank"),
        "kv_rank": config.count("kv_lora_rank"),
        "nope_dim": config.count("qk_nope_head_dim"),
        "rope_dim": config.count("qk_rope_head_dim"),
        "value_dim": config.count("v_head_dim"),
    }
