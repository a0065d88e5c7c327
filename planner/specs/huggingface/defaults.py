"""What a model's class takes where a file leaves a key out: a library that writes a config drops what its class has.

One entry per class, read by the model types under TYPES. A value of None is the class's own null, which each reader
knows the meaning of: a head as wide as hidden_size / num_attention_heads, as many cached heads as heads, no window.
What tells one model of a class from another is not here: width, layers, vocabulary, context, widths and number of
experts. A file without them is not whole and is refused, but for Gemma 3, whose published files leave them out. Nor
are draft layers: a file without their key is one without them.
Source: src/transformers/models/*/configuration_*.py of huggingface/transformers 5.24.0; kimi_k2: the same class beside
moonshotai/Kimi-K2-Instruct; nemotron-nas: configuration_decilm.py beside nvidia/Llama-3_3-Nemotron-Super-49B-v1, a
LlamaConfig.
"""

from __future__ import annotations

from typing import Any

Defaults = dict[str, Any]

PLAIN_HEADS: Defaults = {"head_dim": None, "num_key_value_heads": None}
LATENT: Defaults = {
    "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
    "n_shared_experts": 1, "first_k_dense_replace": 3,
}  # fmt: skip
DELTA: Defaults = {
    "head_dim": 256, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
    "linear_num_key_heads": 16, "linear_num_value_heads": 32,
}  # fmt: skip
SWITCHED: Defaults = {"use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 28}
CLASSES: dict[str, Defaults] = {
    "LlamaConfig": PLAIN_HEADS,
    "MistralConfig": {"head_dim": None, "num_key_value_heads": 8, "sliding_window": 4096},
    "MixtralConfig": {"head_dim": None, "num_key_value_heads": 8, "sliding_window": None},
    "Qwen2Config": {"head_dim": None, "num_key_value_heads": 32, **SWITCHED},
    "Qwen2MoeConfig": {"head_dim": None, "num_key_value_heads": 16},
    "Qwen3Config": {"head_dim": 128, "num_key_value_heads": 32, **SWITCHED},
    "Qwen3VLTextConfig": {"head_dim": 128, "num_key_value_heads": 32, "use_sliding_window": False},
    "Qwen3MoeConfig": {"head_dim": None, "num_key_value_heads": 4},
    "Qwen3VLMoeTextConfig": {"head_dim": None, "num_key_value_heads": 16},
    "MiniMaxM2Config": {"head_dim": 128, "num_key_value_heads": 8},
    "Glm4MoeConfig": {
        "head_dim": None, "num_key_value_heads": 8, "n_shared_experts": 1, "first_k_dense_replace": 1,
    },
    "Gemma3TextConfig": {
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "sliding_window": 4096,
        "vocab_size": 262208, "max_position_embeddings": 131072,
    },
    "Gemma4TextConfig": {
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "sliding_window": 512,
        "global_head_dim": 512, "num_global_key_value_heads": None, "hidden_size_per_layer_input": 256,
    },
    "GptOssConfig": {"num_key_value_heads": 8, "head_dim": 64, "sliding_window": 128},
    "Llama4TextConfig": {
        "num_key_value_heads": 8, "head_dim": 128, "attention_chunk_size": 8192, "interleave_moe_layer_step": 1,
    },
    "MiMoV2FlashConfig": {"num_key_value_heads": 4, "head_dim": 192, "v_head_dim": 128, "sliding_window": 129},
    "Step3p7TextConfig": {"num_key_value_heads": 8, "head_dim": 128, "share_expert_dim": 1280},
    "DeciLMConfig": PLAIN_HEADS,
    "DeepseekV3Config": {**LATENT, "q_lora_rank": 1536},
    "DeepseekV32Config": {
        **LATENT, "q_lora_rank": 1536, "index_n_heads": 64, "index_head_dim": 128, "index_topk": 2048,
    },
    "GlmMoeDsaConfig": {
        **LATENT, "q_lora_rank": 2048, "qk_nope_head_dim": 192, "v_head_dim": 256,
        "index_n_heads": 32, "index_head_dim": 128, "index_topk": 2048,
    },
    "KimiLinearConfig": {**LATENT, "q_lora_rank": None, "first_k_dense_replace": 1, "head_dim": None},
    "Qwen3NextConfig": {**DELTA, "num_key_value_heads": 2},
    "Qwen3_5TextConfig": {**DELTA, "num_key_value_heads": 4},
    "Qwen3_5MoeTextConfig": {**DELTA, "num_key_value_heads": 2},
    "JambaConfig": {
        "head_dim": None, "num_key_value_heads": 8, "attn_layer_period": 8, "attn_layer_offset": 4,
        "expert_layer_period": 2, "expert_layer_offset": 1, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2,
        "mamba_dt_rank": None,
    },
    "NemotronHConfig": {
        "head_dim": 128, "num_key_value_heads": 8, "n_shared_experts": 1, "ssm_state_size": 128,
        "mamba_num_heads": 128, "mamba_head_dim": 64, "n_groups": 8, "conv_kernel": 4, "chunk_size": 128,
    },
    "MiniMaxM3VLTextConfig": {"head_dim": 128, "num_key_value_heads": 4},
    "DeepseekV4Config": {
        "num_key_value_heads": 1, "head_dim": 512, "q_lora_rank": 1024, "qk_rope_head_dim": 64, "o_groups": 8,
        "o_lora_rank": 1024, "sliding_window": 128, "hc_mult": 4, "n_shared_experts": 1, "num_hash_layers": 3,
        "index_n_heads": 64, "index_head_dim": 128, "index_topk": 512,
    },
}  # fmt: skip
"""Class -> the keys that its files may leave out, with what it takes for them."""
TYPES: dict[str, str] = {
    "llama": "LlamaConfig",
    "mistral": "MistralConfig",
    "mixtral": "MixtralConfig",
    "qwen2": "Qwen2Config",
    "qwen2_moe": "Qwen2MoeConfig",
    "qwen3": "Qwen3Config",
    "qwen3_vl_text": "Qwen3VLTextConfig",
    "qwen3_moe": "Qwen3MoeConfig",
    "qwen3_vl_moe": "Qwen3VLMoeTextConfig",
    "qwen3_vl_moe_text": "Qwen3VLMoeTextConfig",
    "minimax_m2": "MiniMaxM2Config",
    "glm4_moe": "Glm4MoeConfig",
    "gemma3": "Gemma3TextConfig",
    "gemma3_text": "Gemma3TextConfig",
    "gemma4": "Gemma4TextConfig",
    "gemma4_text": "Gemma4TextConfig",
    "gpt_oss": "GptOssConfig",
    "llama4": "Llama4TextConfig",
    "llama4_text": "Llama4TextConfig",
    "mimo_v2_flash": "MiMoV2FlashConfig",
    "step3p5": "Step3p7TextConfig",
    "step3p7": "Step3p7TextConfig",
    "nemotron-nas": "DeciLMConfig",
    "deepseek_v3": "DeepseekV3Config",
    "kimi_k2": "DeepseekV3Config",
    "deepseek_v32": "DeepseekV32Config",
    "glm_moe_dsa": "GlmMoeDsaConfig",
    "kimi_linear": "KimiLinearConfig",
    "qwen3_next": "Qwen3NextConfig",
    "qwen3_5": "Qwen3_5TextConfig",
    "qwen3_5_text": "Qwen3_5TextConfig",
    "qwen3_5_moe": "Qwen3_5MoeTextConfig",
    "qwen3_5_moe_text": "Qwen3_5MoeTextConfig",
    "jamba": "JambaConfig",
    "nemotron_h": "NemotronHConfig",
    "minimax_m3": "MiniMaxM3VLTextConfig",
    "minimax_m3_vl": "MiniMaxM3VLTextConfig",
    "minimax_m3_vl_text": "MiniMaxM3VLTextConfig",
    "deepseek_v4": "DeepseekV4Config",
}
"""Model type -> its class."""
UNKNOWN = ("kimi_k3", "minimax_m1")
"""Model types, of the whole or of its language part, whose classes are not known: every key must be in the file."""
