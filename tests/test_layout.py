"""Layouts: reading, completing, refusing, listing; and the pipeline stages they cut a model into."""

from collections import Counter
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import BadLayout
from planner.layout import KEYS, Layout, divisors, legal, problems, read_keys
from planner.specs.library import load_model, names
from planner.specs.model import Model
from planner.stages import heaviest, whole_model

K3, LINEAR = load_model("kimi-k3"), load_model("kimi-linear-48b-a3b")
few = settings(derandomize=True, max_examples=100, deadline=None)


def dense_model() -> Model:
    """Kimi Linear with its experts taken out: no shipped model is dense."""
    only = LINEAR.feed_forward["dense"].model_copy(update={"layers": "rest"})
    return LINEAR.model_copy(update={"feed_forward": {"dense": only}})


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("TP8 DP8 EP64", "TP8 DP8 EP64"),
        ("tp8,dp8,ep64", "TP8 DP8 EP64"),
        ("  TP=8   DP=8 , EP64 ", "TP8 DP8 EP64"),
        ("DP8 TP8", "TP8 DP8 EP64"),
        ("EP64 TP8 DP8 PP1 ETP1 CP1 DCP1 RED0", "TP8 DP8 EP64"),
        ("TP8 DP8 EP32", "TP8 DP8 EP32 ETP2"),
        ("TP8 DP8 ETP4", "TP8 DP8 EP16 ETP4"),
        ("TP8 DP4 PP2", "TP8 DP4 EP32 PP2"),
        ("TP8 DP2 CP2", "TP8 DP2 EP32 CP2"),
        ("TP8 DP8 DCP4", "TP8 DP8 EP64 DCP4"),
        ("TP3 DP16", "TP3 DP16 EP48 RED16"),
        ("TP8 DP8 RED64", "TP8 DP8 EP64 RED64"),
        ("TP8 DP6 EP48", "TP8 DP6 EP48 RED16"),
    ],
)
def test_a_layout_is_read_and_completed(text: str, whole: str) -> None:
    """Order, case, commas and what is left out do not matter: EP x ETP fills the stage, RED is the fewest."""
    found = Layout.parse(text, K3)
    assert str(found) == whole
    assert Layout.parse(str(found), K3) == found


def test_red_defaults_to_the_fewest() -> None:
    """Redundant experts fill up to the next multiple of EP and no further."""
    for dp in range(1, 65):
        layout = Layout.parse(f"DP{dp} EP{dp}", K3)
        assert layout.red == -896 % dp
        assert (896 + layout.red) % layout.ep == 0


def test_a_given_red_of_zero_is_kept() -> None:
    """RED0 asks for no redundant experts, so EP falls to what divides the experts."""
    layout = Layout.parse("TP3 DP16 RED0", K3)
    assert layout.red == 0
    assert 896 % layout.ep == 0
    assert layout.ep * layout.etp == 48


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "'' is not one of"),
        ("TP", "'TP' is not one of"),
        ("8", "'8' is not one of"),
        ("TP8 XP2", "'XP2' is not one of"),
        ("TP-8", "is not one of"),
        ("TP8.5", "is not one of"),
        ("TP8 TP8", "TP is given twice"),
        ("TP0", "TP0 is not at least 1"),
        ("TP8 DP0", "DP0 is not at least 1"),
        ("TP99999999", "is not one of"),
        ("TP64", "TP64 does not divide the 96 heads of kda"),
        ("TP5 DP2", "TP5 does not divide the 96 heads"),
        ("TP8 DP8 EP32 ETP4", "EP32 x ETP4 is 128, and a stage has TP x DP x CP = 64 chips"),
        ("TP8 DP8 EP48", "EP48 x ETP1 is 48, and a stage has"),
        ("TP8 DP6 EP48 RED0", "EP48 does not divide the 896 \\+ 0 experts of moe; use RED16"),
        ("TP8 DP8 EP64 RED63", "EP64 does not divide the 896 \\+ 63 experts"),
        ("DP64 RED1792", "RED1792 is more than the 896 experts"),
        ("TP8 DP8 DCP3", "DCP3 does not divide TP8"),
        ("TP8 PP94", "PP94 is more than the 93 layers"),
        ("TP8 DP2 ETP16 EP1 CP1 PP1 DCP16", "DCP16 does not divide TP8"),
    ],
)
def test_what_a_model_cannot_have_is_refused(text: str, reason: str) -> None:
    """Every refusal names the layout, the rule with its numbers, and what to do."""
    with pytest.raises(BadLayout, match=reason) as error:
        Layout.parse(text, K3)
    assert str(error.value).startswith("layout")
    assert ";" in str(error.value)


def test_tp64_lists_the_tp_that_divide() -> None:
    """64 is the number people try on 64 chips: the sentence says which TP K3's 96 heads allow."""
    with pytest.raises(BadLayout) as error:
        Layout.parse("TP64", K3)
    assert str(error.value) == (
        "layout TP64: TP64 does not divide the 96 heads of kda; use TP of 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 96"
    )


def test_etp_must_split_the_expert_width() -> None:
    """An expert of 3,072 wide splits over 3 ranks and not over 5."""
    assert Layout.parse("TP3 DP5 EP5 ETP3", K3).etp == 3
    with pytest.raises(BadLayout, match="ETP5 does not split the expert width 3072 of moe; use ETP of 1, 2, 3"):
        Layout.parse("TP3 DP5 EP3 ETP5", K3)


def test_a_dense_model_has_no_expert_parallelism() -> None:
    """Without experts EP and ETP are 1, given or not."""
    model = dense_model()
    assert str(Layout.parse("TP4 DP2", model)) == "TP4 DP2 EP1"
    for text in ("TP4 EP4", "TP4 ETP4", "TP4 RED2"):
        with pytest.raises(BadLayout, match="no experts"):
            Layout.parse(text, model)
    assert all(layout.ep == layout.etp == 1 and layout.red == 0 for layout in legal(8, model, Counter()))


def test_dcp_needs_a_shared_cache() -> None:
    """A model that keeps nothing per token and for all heads has nothing for DCP to split."""
    only = LINEAR.attention["kda"].model_copy(update={"layers": "rest"})
    model = LINEAR.model_copy(update={"attention": {"kda": only}})
    with pytest.raises(BadLayout, match="DCP2 splits nothing"):
        Layout.parse("TP8 DCP2", model)
    assert all(layout.dcp == 1 for layout in legal(8, model, Counter()))


def brute_force(chips: int, model: Model) -> set[Layout]:
    """Every legal layout, from the rules as the contract states them and nothing else."""
    ways = range(1, chips + 1)
    heads = [group.heads for group in model.attention.values()]
    inner = [g.inner if g.kind == "dense" else g.shared_inner for g in model.feed_forward.values()]
    experts = [(g.experts, g.inner) for g in model.feed_forward.values() if g.kind == "moe"]
    shares = any(group.kind == "mla" for group in model.attention.values())
    found = set()
    for tp, dp, cp, pp in product(ways, repeat=4):
        if tp * dp * cp * pp != chips or pp > model.layers:
            continue
        if any(count % tp for count in heads) or any(width % tp for width in inner if width):
            continue
        stage = tp * dp * cp
        for ep in range(1, stage + 1):
            if stage % ep or (not experts and ep > 1):
                continue
            etp = stage // ep if experts else 1
            red = max((-count % ep for count, _ in experts), default=0)
            if any(ep > count or red > count or width % etp for count, width in experts):
                continue
            for dcp in range(1, tp + 1):
                if tp % dcp == 0 and (shares or dcp == 1):
                    found.add(Layout(tp, dp, ep, etp, pp, dcp, cp, red))
    return found


@pytest.mark.parametrize("chips", [1, 2, 3, 5, 6, 8, 12, 15, 16, 24])
@pytest.mark.parametrize("model", [K3, LINEAR, dense_model()], ids=["k3", "linear", "dense"])
def test_legal_layouts_equal_brute_force(chips: int, model: Model) -> None:
    """The search's list holds every layout the rules allow, each once, and no other."""
    listed = list(legal(chips, model, Counter()))
    assert len(listed) == len(set(listed))
    assert set(listed) == brute_force(chips, model)


@pytest.mark.parametrize("chips", [8, 24, 64])
def test_listed_layouts_pass_the_rules_and_read_back(chips: int) -> None:
    """What the search lists, the reader accepts."""
    for layout in legal(chips, K3, Counter()):
        assert problems(layout, K3) == []
        assert Layout.parse(str(layout), K3) == layout


def test_refused_shapes_are_counted_by_rule() -> None:
    """A plan can say how many shapes each rule took out."""
    refused: Counter[str] = Counter()
    list(legal(64, K3, refused))
    assert refused["heads"] > 0
    assert set(refused) <= {"heads", "width", "layers", "experts", "expert_width"}


def test_a_layout_that_fills_a_large_system_is_still_read() -> None:
    """Layouts of thousands of chips are read in no time."""
    assert Layout.parse("TP32 DP28 PP93", K3).chips == 32 * 28 * 93


def test_k3_has_four_distinct_heaviest_stages_at_some_depth() -> None:
    """Few stages differ: at most four of them can be the slowest or the fullest, whatever the pipeline's depth."""
    counts = {pp: len(heaviest(K3, pp)) for pp in range(1, 94)}
    assert max(counts.values()) == 4
    assert counts[1] == 1


@pytest.mark.parametrize("name", names("model"))
def test_stages_hold_every_layer_once(name: str) -> None:
    """One stage holds the whole model; more stages hold about an even share, and none dominates another."""
    model = load_model(name)
    assert heaviest(model, 1) == [whole_model(model)]
    for pp in range(1, model.layers + 1):
        stages = heaviest(model, pp)
        sizes = [sum(stage[group] for group in model.attention) for stage in stages]
        assert max(sizes) == -(-model.layers // pp)
        assert min(sizes) >= model.layers // pp
        for stage, size in zip(stages, sizes, strict=True):
            assert sum(stage[group] for group in model.feed_forward) == size
            there = [n for n, g in (*model.attention.items(), *model.feed_forward.items()) if g.kind != "none"]
            assert stage["layer"] == sum(stage[group] for group in there) / 2
        for a, b in product(stages, stages):
            assert a is b or any(a[key] > b[key] for key in a)


@pytest.mark.parametrize("name", names("model"))
def test_kept_stages_stand_for_all(name: str) -> None:
    """Every stage of the pipeline is dominated by a kept one, so that the maximum over the kept is the maximum."""
    model = load_model(name)
    kinds = model.layer_kinds()
    for pp in (2, 3, 5, 8, 13, model.layers):
        size, extra = divmod(len(kinds), pp)
        sizes = [size + 1] * extra + [size] * (pp - extra)
        starts = [sum(sizes[:i]) for i in range(pp)]
        for i, (start, length) in enumerate(zip(starts, sizes, strict=True)):
            run = kinds[start : start + length]
            held = Counter(kind for pair in run for kind in pair)
            held |= Counter({"embedding": int(i == 0), "head": int(i == pp - 1)})
            assert any(all(kept[key] >= held[key] for key in kept) for kept in heaviest(model, pp)), (pp, i)


@few
@given(st.text(alphabet="TPDECRtp 0123456789,=-.\n\t", max_size=40) | st.text(max_size=20))
def test_any_text_is_a_layout_or_refused(text: str) -> None:
    """Nothing but a legal layout or BadLayout comes out of the reader, whatever goes in."""
    found: Layout | BadLayout
    try:
        found = Layout.parse(text, K3)
    except BadLayout as error:
        found = error
    assert "\n" not in str(found)
    assert isinstance(found, BadLayout) or problems(found, K3) == []


@few
@given(st.dictionaries(st.sampled_from(KEYS), st.integers(1, 128), min_size=1))
def test_any_keys_are_completed_or_refused(keys: dict[str, int]) -> None:
    """Well-formed keys give a legal layout that keeps what was given, or a refusal."""
    text = " ".join(f"{key}{value}" for key, value in keys.items())
    try:
        found = Layout.parse(text, K3)
    except BadLayout:
        return
    assert problems(found, K3) == []
    assert all(getattr(found, key.lower()) == value for key, value in keys.items())


@few
@given(st.integers(1, 100_000))
def test_divisors(n: int) -> None:
    """All divisors, in order, each once."""
    assert list(divisors(n)) == [d for d in range(1, n + 1) if n % d == 0]


@pytest.mark.parametrize(
    "text",
    [
        "TP8 DP8 DCP4",
        "TP8DP8DCP4",
        "tp8-dp8-dcp4",
        "TP8 x DP8 x DCP4",
        "TP8xDP8xDCP4",
        "TP8×DP8, DCP=4",
        "TP=8DP=8*DCP4",
    ],
)
def test_what_stands_between_keys(text: str) -> None:
    """However the keys are set apart, they are the same layout."""
    assert read_keys(text) == {"TP": 8, "DP": 8, "DCP": 4}


@pytest.mark.parametrize("text", ["TP8x2", "8x8", "TP8 DP8-", "x", "TP8XX DP8", "TP-8", "TP8 8"])
def test_what_is_no_layout(text: str) -> None:
    """A number without its key is refused."""
    with pytest.raises(BadLayout, match="is not one of TP DP"):
        read_keys(text)
