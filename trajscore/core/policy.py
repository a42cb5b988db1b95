"""Constants that decide what is judged, shown, warned of or refused, each with its reason."""

MIN_RUNS_PER_OUTCOME = 10
"""Runs of each outcome below which no interval is believed and no verdict is given.

With 10, 95% intervals hold in 98 of 100 sets of runs, and are .5 wide. With more they come to 95;
where strata are many and small they stay above.
"""
MIN_RUNS_FOR_DIFFERENCE = 5
"""Runs of the rarer outcome below which no interval of a difference holds often enough."""
MIN_EFFECTIVE_CLUSTERS = 15
"""Equally large clusters below which intervals are wide and may cover less than they say."""
MIN_EFFECTIVE_TASKS = 10
"""Equally large clusters below which an answer is a problem, not just to be checked."""
MIN_LABELS = 20
"""Labelled runs below which no conclusion is drawn: what a judge is worth is not known yet."""
MIN_LABELLED_ERRORS = 30
"""Labelled runs with a wrong step below which a locator is not trusted: with 19, none was better
than position."""
MIN_UNITS_FOR_RARE_LOSSES = 100
"""Runs or clusters below which losses that happened to none may be wider than the interval."""
MIN_UNITS_PER_GROUP = 5
"""Runs or clusters of a group below which a test of its difference shows nothing."""
GROUP_ERROR_RATE = 0.05
"""Chance with which groups drawn at random are called different: the usual level of a test."""

MATERIAL_SHARE = 0.02
"""Share of the base rate's own loss below which a difference of scores changes no decision."""
MATERIAL_SAVING = 0.02
"""Reviews a run below which a threshold does not pay: one of 50 runs."""
MIN_ASSURANCE = 0.7
"""Forecast chance that the runs still needed decide a verdict: then 0.8 and more of them do."""
POWER = 0.8
"""Chance with which a change that is looked for should be noticed: the usual power of a test."""

MIN_ACCEPTED_RUNS = 20
"""Runs above a threshold of acceptance below which the share that fails says little."""
MIN_RUNS_PER_BIN = 10
"""Runs of a bin below which its success rate is not shown beside what was forecast."""
MIN_RUNS_PER_STEP = 10
"""Runs that reach a step below which no mean over them is drawn."""
MIN_RUNS_PER_FOLD = 20
"""Runs below which means of ratios over folds mislead (benchmarks/proper.py)."""
MIN_UNITS_FOR_CRITERION = 10
"""Independent runs or clusters below which a condition of the conditional mean is not checked."""

MIN_RUNS_FOR_LEAKAGE = 5
"""Runs of each outcome below which a predictor may separate outcomes without error by chance."""
MIN_RUNS_FOR_IDS = 20
"""Runs below which whole numbers, another one for each run, need not be ids."""
MAX_SHARE_OF_RUN = 0.05
"""Share of the weight above which one run can decide a score, if it is twice its equal share."""
MAX_AUROC_OF_RISK = 0.4
"""AUROC below which, if the interval excludes chance, a predictor looks like a risk."""
MAX_SHARE_UNCLEAR = 0.1
"""Share of runs above which leaving them out, or what they count as, may decide a verdict."""
MIN_LENGTH_EFFECT = 0.1
"""Distance of an AUROC from chance below which the length of runs hardly tells their outcome."""

MIN_STOPPED_RUNS = 5
"""Stopped runs below which a forecast that resembles the one that stopped them looks like it."""
MIN_CONTINUED_STEPS = 50
"""Steps after which no run was stopped; with fewer, another forecast may fit them by chance."""

MIN_REFERENCE_RUNS = 50
"""Runs of different tasks that a reference needs, and that are waited for after a change."""
MIN_RUNS_TO_NAME_CAUSE = 20
"""Runs of each outcome, before and since a change, below which its cause stays unclear."""

COMBINED_ERROR_SHARE = 0.2
"""Of the error rate of all cards, what that of all signals together has: others keep most of it."""
MOST_SIGNALS = 5
"""Who pays for signals wants few of them: more are not proposed as enough."""
MOST_CANDIDATES = 8
"""Signals, the best with their history, among which the fewest that suffice are looked for."""
