package reports

import (
	"strings"

	"github.com/lockchaos/lockchaos/history"
)

// when says at or by which instant a fault took effect: that of a failover is observed later.
func (f *injection) when() sentence {
	if f.class == history.FaultDemotes {
		return say("by %s", f.took())
	}
	return say("at %s", f.took())
}

// predicate is what a fault did to n targets: "was killed".
func (f *injection) predicate(n int) string {
	if f.verb == "" {
		return plural("was hit by fault "+quote(f.name), n)
	}
	return plural(f.verb, n)
}

// plural is a predicate of one subject with n subjects.
func plural(predicate string, n int) string {
	if n <= 1 {
		return predicate
	}
	predicate = strings.Replace(predicate, " its ", " their ", 1)
	if rest, passive := strings.CutPrefix(predicate, "was "); passive {
		return "were " + rest
	}
	return predicate
}

// back is that n nodes were up again after a fault that ended them, as a predicate.
func (f *injection) back(n int) string {
	if f.empties() {
		return plural("was back, empty,", n)
	}
	return plural("was back", n)
}

// during is what a fault did to its target and for how long: "was paused from
// 0.707 s to 2.507 s (`pause-client`)".
func (f *injection) during() sentence {
	if f.heal < history.Infinity && f.healEvent >= 0 {
		return say("%s from %s to %s (%s)", f.predicate(1), f.took(), f.healed(), f)
	}
	return say("%s from %s (%s)", f.predicate(1), f.took(), f)
}

// clockText is a node with a clock that was set forward, as the fault observed it.
func (f *injection) clockText() sentence {
	switch by := f.behind(); {
	case f.drifts():
		return say("%s, whose clock gained %s every second from %s", f.target, quoted(f.amount(), f.injected()),
			f.injected())
	case by != "":
		return say("%s, whose clock jumped %s ahead at %s, when it was corrected", f.target, quoted(by, f.took()),
			f.healed())
	}
	return say("%s, whose clock jumped %s ahead at %s", f.target, quoted(f.ahead(), f.took()), f.took())
}

// tookEffect says where and when a fault took effect.
func (f *injection) tookEffect() sentence {
	return say("%s took effect on %s at %s", f, subject(f.target), f.took())
}
