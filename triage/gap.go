package triage

import (
	"cmp"
	"math"
	"slices"

	"vllm-triage/triage/kb"
)

// refutes says whether a hard condition of a cause does not hold, other than because its signal is missing.
func (o *observations) refutes(c kb.Cause) bool {
	return slices.ContainsFunc(c.Requires, func(r kb.Condition) bool {
		unread := math.IsNaN(o.feature(r.Signal, r.Feature)) && o.gap(r.Signal) != nil
		return !unread && !o.holds(r)
	})
}

// mayApply says whether a predicate applies as far as its guards are measured.
func (o *observations) mayApply(p kb.Predicate) bool {
	return !slices.ContainsFunc(p.When, func(c kb.Condition) bool {
		v := o.feature(c.Signal, c.Feature)
		return !math.IsNaN(v) && !within(v, c) && o.gap(c.Signal) == nil
	})
}

// gapIn returns what is missing of the signals that a predicate reads, nil when nothing is.
func (o *observations) gapIn(p kb.Predicate) *observation {
	x := o.gap(p.Signal)
	for _, t := range p.All {
		x = cmp.Or(x, o.gap(t.Signal))
	}
	for _, c := range p.When {
		x = cmp.Or(x, o.gap(c.Signal))
	}
	return x
}

// gap returns what is missing of a signal that this server should export: it could not be read, has no samples, or is
// estimated from others. It is nil for what only some servers have: nobody misses that.
func (o *observations) gap(id string) *observation {
	x := o.get(id)
	switch {
	case x.whole || x.scalar[certain] > 0:
		return nil
	case x.state == Failed || x.state == Stale || x.state == Present && x.estimate:
		return x
	case x.sig.Queried():
		due := slices.ContainsFunc(x.sig.Names, func(n string) bool { return o.due[n] })
		if x.state == Absent && (due || x.sig.Scope != "model" && !x.sig.Optional && !x.sig.Neighbour()) {
			return x
		}
		return nil
	case x.sig.Pool && o.pool.tokens == 0:
		return x
	}
	parts := slices.Concat(x.sig.Needs, x.sig.BetterWith)
	if r := x.sig.Ratio; r != nil {
		parts = append(parts, r.Num, r.Den)
	}
	return o.gapAmong(parts)
}

// gapAmong returns what is missing of the first of some signals that has a gap.
func (o *observations) gapAmong(ids []string) *observation {
	for _, id := range ids {
		if y := o.gap(id); y != nil {
			return y
		}
	}
	return nil
}

// lost says that a signal was there and could not be read: the query failed, or its samples end.
func (x *observation) lost() bool { return x.state == Failed || x.state == Stale }
