"""Computes when schedules fire, for crates/formats/tests/cron.rs to compare with.

Written from docs/triggers.md and from nothing else: croniter finds the wall-clock times on a calendar without zones,
zoneinfo says which instants they are, and the rules for skipped and repeated times are applied here one time after the
other. Run with PYTHONTZPATH="" so that the zones are those of the tzdata package.

Each line of the output: zone, expression, when_skipped, when_repeated, after, until, and the fires in (after, until]
in seconds since 1970, with tabs between the columns and spaces between the fires.
"""

import bisect
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from zoneinfo import ZoneInfo

from croniter import croniter

# Ten years each, of which every clock change is looked at. They lie in the past, where releases of the database agree;
# each zone's are chosen for what happened in them.
ZONES = [
    ("Europe/Amsterdam", 2016),
    ("America/New_York", 2016),
    ("Australia/Lord_Howe", 2016),  # half an hour
    ("America/Sao_Paulo", 2010),  # the gap is at midnight; no changes since 2019
    ("Asia/Kolkata", 2016),  # no changes at all, and half an hour off
    ("Africa/Casablanca", 2014),  # goes back for Ramadan, and changed its rules in 2018
    ("Antarctica/Troll", 2016),  # two hours
    ("Pacific/Apia", 2005),  # left out a whole day in 2011
]
YEARS = 10

# Each expression with how many hours are looked at, half of them before a clock change and half after it; without
# hours, all ten years are.
EXPRESSIONS = [
    ("* * * * *", 2),
    ("*/7 * * * *", 4),
    ("*/15 * * * *", 6),
    ("0 * * * *", 12),
    ("30 * * * *", 12),
    ("0 */2 * * *", 16),
    ("45 */3 * * *", 30),
    ("*/20 0-3 * * *", 30),
    ("10,50 1,2,3 * * *", 30),
    ("*/10 2 * * *", 30),
    ("0 0 * * *", 60),
    ("30 1 * * *", 60),
    ("0 2 * * *", 60),
    ("15 2 * * *", 60),
    ("30 2 * * *", 60),
    ("0 3 * * *", 60),
    ("0 2 * * SUN", 200),
    ("30 1 * * SAT,SUN", 200),
    ("@hourly", 6),
    ("30 0 2 * * *", 60),
    ("*/30 59 1-2 * * *", 30),
    ("0 8 * * 1-5", 200),
    ("30 2 1,15 * *", None),
    ("0 0 1 * *", None),
    ("15 1 L * *", None),
    ("30 2 * 3,10 SUN", None),
    ("30 2 29 2 *", None),
    ("0 12 13 * FRI", 200),
    ("45 1 * * 0#2", None),
    ("0 0 1 JAN *", None),
    ("@weekly", None),
    ("@yearly", None),
]

EPOCH = datetime(1970, 1, 1)
SECOND = timedelta(seconds=1)


def epoch(naive):
    """Seconds since 1970 of a time in UTC."""
    return int((naive - EPOCH).total_seconds())


def offset(zone, at):
    """How far the zone is ahead of UTC at an instant, in seconds."""
    return int(datetime.fromtimestamp(at, timezone.utc).astimezone(zone).utcoffset().total_seconds())


def first_with(zone, low, high):
    """The first instant in (low, high] that has the offset of `high`."""
    wanted = offset(zone, high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if offset(zone, middle) == wanted else (middle, high)
    return high


@lru_cache(maxsize=None)
def changes(name, year):
    """Every instant in the ten years at which the clock changes."""
    zone, found = ZoneInfo(name), []
    at, end = epoch(datetime(year, 1, 1)), epoch(datetime(year + YEARS, 1, 1))
    while at < end:
        later = at + 43200
        if offset(zone, at) != offset(zone, later):
            found.append(first_with(zone, at, later))
        at = later
    return found


def wall_times(expression, start, end):
    """Wall-clock times of the expression in [start, end)."""
    seconds_first = len(expression.split()) == 6
    times = croniter(expression, start - SECOND, second_at_beginning=seconds_first)
    found = []
    while (at := times.get_next(datetime)) < end:
        found.append(at)
    return found


@lru_cache(maxsize=None)
def whole_years(expression, year):
    return wall_times(expression, datetime(year, 1, 1) - timedelta(days=3), datetime(year + YEARS, 1, 1) + timedelta(days=3))


def instants(zone, wall):
    """What a wall-clock time is: ("once", [t]), ("twice", [t1, t2]) or ("never", [the end of the gap])."""
    offsets = (wall.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1))
    one, two = (epoch(wall - ahead) for ahead in offsets)
    if one == two:
        return "once", [one]
    if one < two:
        return "twice", [one, two]
    # In a gap, fold 0 counts with the offset before it and fold 1 with the one after: the change lies between.
    return "never", [first_with(zone, two - 1, one)]


def fires(found, counts_hours, skipped, repeated):
    """The fires of wall-clock times, by the rules."""
    out = set()
    for kind, at in found:
        if kind == "once" or (kind == "never" and skipped == "run"):
            out.update(at)
        elif kind == "twice":
            both = repeated == "twice" or (repeated == "default" and counts_hours)
            out.update(at if both else at[:1])
    return sorted(out)


def hour_field(expression):
    if expression.startswith("@"):
        return "*" if expression == "@hourly" else "0"
    return expression.split()[-4]


def windows(name, year, hours):
    """The stretches of time to look at, as (after, until]."""
    start, end = epoch(datetime(year, 1, 1)), epoch(datetime(year + YEARS, 1, 1))
    if hours is None:
        return [(start, end)]
    # And one in the middle of nowhere.
    centres = changes(name, year) + [epoch(datetime(year + 5, 6, 15, 11, 30))]
    return [(centre - hours * 1800, centre + hours * 1800) for centre in centres]


def main():
    for name, year in ZONES:
        zone = ZoneInfo(name)
        for expression, hours in EXPRESSIONS:
            counts_hours = "*" in hour_field(expression)
            for after, until in windows(name, year, hours):
                if hours is None:
                    walls = whole_years(expression, year)
                else:
                    # From the lower offset to the higher one: all that can fire, what fell into a gap too.
                    both = [offset(zone, at) for at in (after, until)]
                    low, high = EPOCH + timedelta(seconds=after + min(both)), EPOCH + timedelta(seconds=until + max(both))
                    walls = wall_times(expression, low, high + SECOND)
                found = [instants(zone, wall) for wall in walls]
                for skipped in ("run", "skip"):
                    for repeated in ("default", "once", "twice"):
                        all_fires = fires(found, counts_hours, skipped, repeated)
                        kept = all_fires[bisect.bisect_right(all_fires, after) : bisect.bisect_right(all_fires, until)]
                        columns = [name, expression, skipped, repeated, after, until, " ".join(map(str, kept))]
                        print(*columns, sep="\t")


if __name__ == "__main__":
    main()
