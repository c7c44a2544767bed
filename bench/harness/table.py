"""Ratios of times, as a table and against an earlier run's."""
from __future__ import annotations

import statistics
from typing import Any

Times = dict[str, list[float]]
NOTABLE = 0.05  # the part of a ratio by which it must change to be marked


def ratios(result: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """Peer: (its least time / mxc's, its corrected median / mxc's); above 1 mxc is faster. Empty without mxc."""
    times: Times = result["times"]
    if not times.get("mxc"):
        return {}
    return {name: (min(t) / min(times["mxc"]), _median(result, name) / _median(result, "mxc"))
            for name, t in times.items() if name != "mxc" and t}


def _median(result: dict[str, Any], peer: str) -> float:
    """Of the times without the machine's drift, where it is known."""
    return statistics.median(result.get("corrected", {}).get(peer) or result["times"][peer])


def header(peers: list[str]) -> str:
    return f"{'case':42}{'mxc ms':>18}" + "".join(f"{peer:>15}" for peer in peers if peer != "mxc")


def row(case: str, result: dict[str, Any], peers: list[str]) -> str:
    """One line: mxc's minimum and median, each peer's ratios of both; "-": not done, "FAILED": it went wrong."""
    times, failures = result["times"], result["failures"]
    here = ratios(result)
    ours = times.get("mxc")
    cells = [f"{min(ours) * 1e3:.3f}/{_median(result, 'mxc') * 1e3:.3f}" if ours else
             "FAILED" if "mxc" in failures else "-"]
    for peer in peers:
        if peer == "mxc":
            continue
        cells.append("FAILED" if peer in failures else
                     f"{here[peer][0]:.2f}/{here[peer][1]:.2f}" if peer in here else "-")
    return f"{case:42}{cells[0]:>18}" + "".join(f"{cell:>15}" for cell in cells[1:])


def comparison(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Lines for what both runs have: the ratio of minima before and now, marked where it changed notably."""
    lines = []
    for threads, cases in new["threads"].items():
        for case, result in cases.items():
            before = old["threads"].get(threads, {}).get(case)
            if before is None:
                continue
            was, now = ratios(before), ratios(result)
            for peer in now:
                if peer not in was:
                    continue
                change = now[peer][0] / was[peer][0] - 1
                mark = "" if abs(change) < NOTABLE else "  better" if change > 0 else "  WORSE"
                lines.append(f"{threads} {case:42}{peer:>15}{was[peer][0]:>9.2f}{now[peer][0]:>9.2f}"
                             f"{change:>+9.1%}{mark}")
    return lines
