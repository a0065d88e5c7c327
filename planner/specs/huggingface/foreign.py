"""What a family must say it reads: a config that holds more is another model, and refused rather than half read."""

from __future__ import annotations

from typing import Any

from planner.specs.huggingface.config import Config

MARKS: dict[str, tuple[str, ...]] = {
    "experts": ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts"),
    "a latent cache": ("kv_lora_rank",),
    "an indexer": ("index_topk", "sparse_attention_config"),
    "compressed attention": ("compress_ratios",),
    "linear attention": ("linear_num_key_heads", "linear_attn_config", "attn_type_list"),
    "a state space": ("mamba_num_heads", "mamba_d_state", "ssm_state_size", "layers_block_type"),
    "experts in a latent": ("moe_latent_size", "routed_expert_hidden_size"),
    "streams between layers": ("hc_mult", "attn_res_block_size"),
    "layers of different make": ("block_configs", "hybrid_layer_pattern", "hybrid_override_pattern"),
    "inputs per layer": ("hidden_size_per_layer_input",),
    "caches shared by layers": ("num_kv_shared_layers", "cla_share_factor"),
    "cross-attention": ("cross_attention_layers", "is_encoder_decoder"),
}
"""What the keys stand for; a value of null, 0, 1, false or nothing means the model has none of it."""
WRITTEN = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel", "ForImageTextToText", "ForMultimodalLM")
DRAFTS = ("eagle", "mtp", "nextn", "medusa", "dspark", "dflash", "speculator", "draft")


def refuse_foreign(config: Config, *read: str) -> None:
    """Raises BadSpec where the config holds what this family does not read. read: keys of MARKS it does."""
    for mark, keys in MARKS.items():
        for key in keys:
            if mark not in read and present(config.get(key)):
                absent = "" if key in config.data else " (not in the file: its class has it)"
                what = f"stands for {mark}{absent}, which the reader of {config.kind} models does not know"
                raise config.wrong(key, what, "write the model as a YAML")


def present(value: Any) -> bool:
    """Whether a value says that the model has the thing."""
    if isinstance(value, list):
        return any(present(entry) for entry in value)
    return value is True or value not in (None, 0, 1, "", {})


def refuse_architecture(config: Config) -> None:
    """Raises BadSpec for a draft model, or for a network with another end than a language model's."""
    for data in (config.root, config.data):
        named = data.get("architectures") or []
        if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
            raise config.wrong("architectures", "is not a list of names")
        for name in named:
            if any(word in name.lower() for word in DRAFTS):
                raise config.wrong("architectures", f"{name} is a draft model", "name the model it drafts for")
            if data is config.data and not name.endswith(WRITTEN):
                raise config.wrong(
                    "architectures", f"{name} does not generate text", "name the config of a causal language model"
                )
