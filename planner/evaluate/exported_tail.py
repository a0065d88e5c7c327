"""What ends every exported file: its checks of changed inputs and `headlines`, as text."""

from __future__ import annotations

TAIL = '''
def headlines(**changes):
    """The headline quantities for changed inputs, SI units. changes: names in INPUTS, numbers or numpy arrays.

    `feasible` is whether it fits in memory (memory_slack_bytes, the room left on the fullest chip, is not negative) and
    every headline is a finite number. Times, rates and costs of what does not fit are None, in arrays nan; so are
    decode.tpot_s and decode.tok_s_per_user with one output token. ask_length, the tokens a request reaches, follows
    ask_isl and ask_osl unless it is changed itself. Raises TypeError for a name that is not in INPUTS, ValueError for a
    value that an input may not have.
    """
    changed = {name: checked(name, value) for name, value in changes.items()}
    given = {**FIXED, **{name: entry[0] for name, entry in INPUTS.items()}, **changed}
    if "ask_length" not in changed:
        given["ask_length"] = given["ask_isl"] + given["ask_osl"]
    check_together(given)
    with errstate(all="ignore"):
        found = dict(zip(HEADLINES, kernel(**given), strict=True))
    single = asarray(given["ask_osl"]) < 2
    feasible = asarray(found["memory_slack_bytes"]) >= 0
    for key, value in found.items():
        feasible = feasible & (isfinite(value) | (single if key in BETWEEN_TOKENS else False))
    for key, value in found.items():
        if not key.startswith(ANYWAY):
            means = feasible & ~single if key in BETWEEN_TOKENS else feasible
            kept = where(means, value, nan)
            found[key] = kept if kept.ndim else value if means else None
    found["feasible"] = feasible if feasible.ndim else bool(feasible)
    return found


def checked(name, value):
    """A changed input as an array. Raises TypeError for a name that is none, ValueError for a value it may not have."""
    if name not in INPUTS:
        raise TypeError(f"{name} {instead(name, value)}")
    _, least, most, kind = INPUTS[name]
    may = legal(least, most, kind)
    found = array(value)
    if found.dtype.kind not in "iuf":
        raise ValueError(f"{name} is {value!r}, not a number: give {may}")
    found = found.astype(float)
    above = kind == "above"
    wrong = ~isfinite(found) | (found < least) | (found > most) | (above & (found == least))
    if kind == "count":
        wrong = wrong | (found != floor(found))
    if wrong.any():
        raise ValueError(f"{name} is {found[wrong].flat[0]:g}: give {may}")
    return found


def legal(least, most, kind):
    """What an input may be, in words."""
    if least == most:
        return f"nothing but {least:g}, or export another"
    what = "a whole number" if kind == "count" else "a number"
    low, high = (f"{int(end):,}" if end == floor(end) else f"{end:g}" for end in (least, most))
    if most >= 1e12:
        return f"{what} above {low}" if kind == "above" else f"{what} from {low} on"
    return f"{what} above {low}, at most {high}" if kind == "above" else f"{what} from {low} to {high}"


def instead(name, value):
    """Why a name cannot be changed, and what can."""
    if name in FIXED or "layout_" + name in FIXED or name.startswith("layout"):
        return "is fixed in this file: export another"
    word = name if name in CHOSEN else "ask_" + name
    if word in CHOSEN:
        return f"is chosen by a word: {CHOSEN[word]}"
    close = get_close_matches(name, INPUTS, n=1) or get_close_matches("ask_" + name, INPUTS, n=1)
    close = close or [known for known in INPUTS if known.endswith("_" + name)]
    return "is no input" + (f"; did you mean {close[0]}?" if close else "; see INPUTS")


def check_together(given):
    """Inputs that limit one another. Raises ValueError."""
    if (asarray(given["ask_isl"] + given["ask_osl"]) > CONTEXT).any() or (asarray(given["ask_length"]) > CONTEXT).any():
        raise ValueError(f"ask_isl + ask_osl is beyond the model's context: give at most {CONTEXT:,} tokens together")
    if "ask_prefix_hit" in given and (asarray(given["ask_isl"] * (1 - given["ask_prefix_hit"])) < 1 - 1e-9).any():
        raise ValueError("ask_prefix_hit leaves less than one token of ask_isl to prefill: give a smaller share")
    for name, other, more in AT_MOST:
        if (asarray(given[name]) > asarray(given[other]) + more).any():
            raise ValueError(f"{name} is over {other}" + (f" + {more}" if more else "") + ": give less")


if __name__ == "__main__":
    for key, value in headlines().items():
        print(f"{key}: {value}")
'''
"""Plain text: nothing is filled in."""
