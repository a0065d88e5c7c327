"""One reader per quantisation method: which modules it covers and in which format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from planner.errors import shown
from planner.kinds.formats import FORMATS
from planner.specs.huggingface.config import Config
from planner.specs.huggingface.modules import Names, among_experts, ancestors, bare, is_head

NOTHING = Names.of([])
BLOCK = [128, 128]
FP8_NAMES = ("e4m3", "e4m3fn", "e5m2", "float8_e4m3fn", "float8_e4m3", "float8_e5m2")
GROUPS = {"fp8_block": 128, "mxfp4": 32, "mxfp8": 32, "nvfp4": 16}
"""Values with one scale; a format that is not named has one scale for a tensor or channel."""
INT4_GROUPS = {32: "int4", 128: "int4_g128"}
ALGORITHMS = {
    "FP8": "fp8",
    "FP8_PER_CHANNEL_PER_TOKEN": "fp8",
    "FP8_PB_WO": "fp8_block",
    "FP8_BLOCK": "fp8_block",
    "NVFP4": "nvfp4",
    "NVFP4_AWQ": "nvfp4",
    "W4A16_NVFP4": "nvfp4",
    "MXFP8": "mxfp8",
    "MXFP4": "mxfp4",
    "W4A8_MXFP4_FP8": "mxfp4",
    "W4A16_MXFP4": "mxfp4",
    "INT8_SQ": "int8",
    "W8A8_SQ_PER_CHANNEL": "int8",
    "W8A16": "int8",
}
"""modelopt's names; the INT4 ones carry a group size and are read apart."""
INT4_ALGORITHMS = ("INT4_AWQ", "W4A16_AWQ", "W4A8_AWQ")
ALGORITHMIC = {
    "": (*FORMATS,),
    "modelopt": (*FORMATS,),
    "modelopt_fp4": ("nvfp4", "mxfp4"),
    "fp8": ("fp8", "fp8_block"),
}
"""Values of `quant_method` that `quant_algo` says more about -> the formats it may say."""
PACKINGS_OF_FOUR = {"nvfp4-pack-quantized": "nvfp4", "mxfp4-pack-quantized": "mxfp4"}
PACKINGS = (
    "", "pack-quantized", "int-quantized", "float-quantized", "naive-quantized", "mxfp8-quantized",
    "mixed-precision", "dense", *PACKINGS_OF_FOUR,
)  # fmt: skip
STRATEGIES = {"": False, "tensor": False, "channel": False, "block": False, "group": True, "tensor_group": True}
"""How compressed-tensors shares scales -> whether by groups of a size it gives."""
ONE_GROUP = "name each module in one group"
MIXED = ("MIXED_PRECISION", "W4A8_NVFP4_FP8")


@dataclass(frozen=True)
class Scheme:
    """What a method does with a module's bare name.

    table: a format by name, before everything else; ignore: kept plain; default: what covers the rest, or None.
    """

    default: Callable[[str], str | None]
    ignore: Names = NOTHING
    table: dict[str, str] | None = None
    spares_head: bool = True
    kv: str | None = None
    note: str = ""

    def named(self, name: str) -> str | None:
        """The format a table gives this module or one it is inside of."""
        if self.table is None:
            return None
        return next((self.table[part] for part in ancestors(name) if part in self.table), None)

    def spared(self, name: str) -> bool:
        """Named by the ignore list, or the head where the method leaves it out."""
        return self.ignore.match(name) or (self.spares_head and is_head(name))


def names_in(config: Config, *keys: str) -> Names:
    """The module names under any of the keys. Raises BadSpec."""
    found: list[str] = []
    for key in keys:
        value = config.data.get(key)
        if value is None:
            continue
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            raise config.wrong(key, "is not a list of module names")
        found += value
    try:
        return Names.of(found)
    except ValueError as error:
        key = next(key for key in keys if config.data.get(key) is not None)
        raise config.wrong(key, f"holds {error}", "name modules more plainly") from None


def always(format: str) -> Callable[[str], str | None]:
    """One format for every module covered."""
    return lambda name: format


def fp8(config: Config) -> Scheme:
    """DeepSeek's FP8 in blocks of 128 x 128, or FP8 with one scale a tensor or channel; experts may have their own."""
    block, stored = config.get("weight_block_size"), config.get("fmt")
    if block is not None and block != BLOCK:
        raise config.wrong("weight_block_size", f"{shown(block)}: only blocks of 128 x 128 are known here")
    if stored is not None and stored not in FP8_NAMES:
        raise config.wrong("fmt", f"{shown(stored)} is not one of {', '.join(FP8_NAMES)}")
    format = in_groups(config, "fp8" if block is None else "fp8_block")
    ignore = names_in(config, "modules_to_not_convert", "ignored_layers", "ignore", "exclude_modules")
    return Scheme(always(format), ignore)


def fbgemm(config: Config) -> Scheme:
    """FP8 with one scale a row."""
    return Scheme(always(in_groups(config, "fp8")), names_in(config, "modules_to_not_convert"))


def mxfp4(config: Config) -> Scheme:
    """gpt-oss: MXFP4 experts, the rest as listed."""
    format, ignore = in_groups(config, "mxfp4"), names_in(config, "modules_to_not_convert")
    return Scheme(lambda name: format if among_experts(name) else None, ignore)


def mxfp8(config: Config) -> Scheme:
    """MXFP8 but for what is listed."""
    ignore = names_in(config, "modules_to_not_convert", "ignored_layers", "ignore")
    return Scheme(always(in_groups(config, "mxfp8")), ignore)


def in_groups(config: Config, format: str) -> str:
    """The format, whose groups are of the size the config gives, where it gives one. Raises BadSpec."""
    group, own = whole_or_none(config, "group_size"), GROUPS.get(format)
    if group not in (None, own or -1):
        has = f"groups of {own}" if own else "no groups"
        raise config.wrong("group_size", f"{group}: {format} has {has} here")
    return format


def integer(config: Config, bits: int | None, group: int | None) -> str:
    """The format of integer weights. Raises BadSpec where none here has these bits and groups."""
    if bits == 8 and group in (None, -1):
        return "int8"
    if bits == 4 and group in INT4_GROUPS:
        return INT4_GROUPS[group]
    known = "8 bits a channel, or 4 bits in groups of 32 or 128"
    raise config.wrong("bits", f"{bits} bits in groups of {group}: no such integer format here", f"known: {known}")


def whole_or_none(config: Config, *keys: str) -> int | None:
    """A whole number, -1 for none included."""
    value = config.get(*keys)
    if value is None:
        return None
    return -1 if value == -1 else config.whole(keys[0], value, 1)


def grouped_integers(config: Config) -> Scheme:
    """GPTQ and AWQ: integers with a scale a group."""
    format = integer(
        config, whole_or_none(config, "bits", "w_bit"), whole_or_none(config, "group_size", "q_group_size")
    )
    if config.get("modules_in_block_to_quantize") is not None:
        raise config.wrong("modules_in_block_to_quantize", "a list of quantised modules is not read here")
    dynamic = {} if config.get("dynamic") is None else config.inner("dynamic").data
    if any(not key.startswith("-:") for key in dynamic):
        raise config.wrong("dynamic", "gives some modules their own bits, which is not read here")
    left_out = {**config.data, "dynamic": [f"re:{key[2:]}" for key in dynamic]}
    skipped = names_in(Config(config.where, left_out, {}), "modules_to_not_convert", "dynamic")
    return Scheme(always(format), skipped, spares_head=not config.flag(False, "lm_head"))


def compressed_tensors(config: Config) -> Scheme:
    """Groups of targets, each with its weights' type, bits and grouping."""
    groups = config.inner("config_groups")
    sparsity = config.get("sparsity_config")
    if sparsity is not None and config.inner("sparsity_config").get("format") not in (None, "dense"):
        raise config.wrong("sparsity_config", f"{shown(sparsity['format'])}: sparse weights are not read here")
    general: str | None = None
    picked: list[tuple[Names, str]] = []
    for key in groups.data:
        group = groups.inner(key)
        if group.get("weights") is None:
            continue
        format = weights_format(group.inner("weights"), group.text(config.text("", "format"), "format"))
        targets = group.get("targets")
        if not isinstance(targets, list) or not all(isinstance(target, str) for target in targets):
            raise group.wrong("targets", "is not a list of module names")
        if "Linear" in targets:
            if general not in (None, format):
                raise group.wrong("targets", f"Linear is {general} in one group and {format} in another", ONE_GROUP)
            general = format
        own = {"targets": [target for target in targets if target != "Linear"]}
        picked.append((names_in(Config(group.where, own, {}), "targets"), format))
    if general is None and not picked:
        raise groups.wrong("weights", "no group says how weights are stored")

    def default(name: str) -> str | None:
        found = {format for names, format in picked if names.match(name)}
        if len(found) > 1:
            raise groups.wrong("targets", f"{name} is {' and '.join(sorted(found))} in different groups", ONE_GROUP)
        return found.pop() if found else general

    return Scheme(default, names_in(config, "ignore"), spares_head=False, kv=cache_format(config))


def weights_format(weights: Config, packing: str) -> str:
    """The format of one group's weights. Raises BadSpec."""
    kind, bits = weights.text("", "type"), weights.count("num_bits")
    group, strategy = whole_or_none(weights, "group_size"), weights.text("", "strategy")
    if packing not in PACKINGS:
        raise weights.wrong(
            "format", f"{packing!r}: no such packing is known here", f"known: {', '.join(PACKINGS[1:])}"
        )
    if packing in PACKINGS_OF_FOUR and (kind, bits) != ("float", 4):
        raise weights.wrong("num_bits", f"{bits} bits of {kind or 'no type'} where the packing is {packing}")
    if strategy not in STRATEGIES:
        raise weights.wrong("strategy", f"{strategy!r} is not one of {', '.join(STRATEGIES)}")
    sizes = STRATEGIES[strategy]
    if strategy and (group in (None, -1)) == sizes:
        raise weights.wrong("group_size", f"{group} where strategy is {strategy}")
    block = weights.get("block_structure")
    if block not in (None, BLOCK, "128x128"):
        raise weights.wrong("block_structure", f"{shown(block)}: only blocks of 128 x 128 are known here")
    blocks = strategy == "block" or block is not None
    if kind == "int" and not blocks:
        return integer(weights, bits, group)
    if blocks and (kind != "float" or bits != 8 or strategy not in ("", "block")):
        raise weights.wrong("block_structure", f"blocks of {bits}-bit {kind} by {strategy}: no such format here")
    if kind == "float" and bits == 8:
        if blocks:
            return "fp8_block"
        if group in (None, -1):
            return "fp8"
        if group == 32:
            return "mxfp8"
    if kind == "float" and bits == 4:
        own = PACKINGS_OF_FOUR.get(packing) or {16: "nvfp4", 32: "mxfp4"}.get(group or 0)
        if own is not None:
            return in_groups(weights, own)
    raise weights.wrong("num_bits", f"{bits} bits of {kind or 'no type'} in groups of {group}: no such format here")


def modelopt(config: Config) -> Scheme:
    """NVIDIA's names: one algorithm, or a table of them by module, beside a list of modules left out."""
    algorithm = config.text("", "quant_algo")
    bits, method = config.maybe_count("bits", "w_bit"), config.text("", "quant_method", "quant_type")
    if algorithm not in MIXED:
        format = algorithm_format(config)
        if bits not in (None, FORMATS[format].value_bits):
            raise config.wrong("bits", f"{bits} where quant_algo says {algorithm}", "keep the one that holds")
        if format not in ALGORITHMIC.get(method, FORMATS):
            raise config.wrong("quant_algo", f"{algorithm} where quant_method says {method}", "keep the one that holds")
    ignore = names_in(config, "ignore", "exclude_modules", "modules_to_not_convert")
    kv = config.text("", "kv_cache_quant_algo") or cache_format(config)
    if algorithm not in MIXED:
        return Scheme(always(algorithm_format(config)), ignore, spares_head=False, kv=kv or None)
    if config.get("quantized_layers") is None:
        return stated_experts(config, ignore, kv)
    table = layer_table(config.inner("quantized_layers"))
    if not table:
        raise config.wrong("quantized_layers", "is empty", "add hf_quant_config.json beside the config")
    return Scheme(lambda name: None, ignore, table, kv=kv or None)


def layer_table(layers: Config) -> dict[str, str]:
    """Bare module name -> format. Such tables have tens of thousands of entries of a few sorts: each is read once."""
    sorts: dict[str, str] = {}
    found = {}
    for name, entry in layers.data.items():
        sort = str(entry)
        if sort not in sorts:
            sorts[sort] = algorithm_format(layers.inner(name))
        found[bare(name)] = sorts[sort]
    return found


def stated_experts(config: Config, ignore: Names, kv: str | None) -> Scheme:
    """Without a table: the experts by a key of their own over FP8 for the rest, else nothing is known."""
    own = config.get("moe_quant_algo")
    if own is None or config.get("quant_method") != "fp8":
        missing = "is missing, and MIXED_PRECISION says nothing without it"
        raise config.wrong("quantized_layers", missing, "add hf_quant_config.json beside the config")
    experts = algorithm_format(Config(config.where, {"quant_algo": own, "group_size": config.get("group_size")}, {}))
    rest = fp8(Config(config.where, {"weight_block_size": config.get("weight_block_size")}, {})).default
    note = f"No table of layers: experts in {own} by moe_quant_algo; what its list leaves out stays in FP8."
    return Scheme(
        lambda name: experts if among_experts(name) and not ignore.match(name) else rest(name), kv=kv or None, note=note
    )


def algorithm_format(config: Config) -> str:
    """The format of one of modelopt's algorithms. Raises BadSpec."""
    algorithm = config.text("", "quant_algo")
    if algorithm in INT4_ALGORITHMS:
        return integer(config, 4, whole_or_none(config, "group_size") or 128)
    if algorithm not in ALGORITHMS:
        known = ", ".join((*ALGORITHMS, *INT4_ALGORITHMS))
        raise config.wrong("quant_algo", f"{algorithm!r}: no such weights are known here", f"known: {known}")
    return in_groups(config, ALGORITHMS[algorithm])


def cache_format(config: Config) -> str | None:
    """What the checkpoint says of the cache, for a note."""
    scheme: Any = config.get("kv_cache_scheme")
    return f"{scheme.get('num_bits')}-bit {scheme.get('type')}" if isinstance(scheme, dict) else None


METHODS: dict[str, Callable[[Config], Scheme]] = {
    "fp8": fp8,
    "fbgemm_fp8": fbgemm,
    "mxfp4": mxfp4,
    "mxfp8": mxfp8,
    "gptq": grouped_integers,
    "awq": grouped_integers,
    "compressed-tensors": compressed_tensors,
    "modelopt": modelopt,
    "modelopt_fp4": modelopt,
}
"""`quant_method` -> its reader."""
