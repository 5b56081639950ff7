package triage

import (
	"math"
	"slices"
	"time"

	"vllm-triage/promq"
	"vllm-triage/triage/kb"
)

// onsetSignals are the symptoms whose deviation dates the incident, with the direction that hurts: +1 up, -1 down.
// Latencies of finished requests are left out: they are a whole request late.
var onsetSignals = []struct {
	id  string
	dir int
}{
	{"waiting", +1},
	{"running", +1},
	{"kv_usage_max", +1},
	{"waiting_deferred", +1},
	{"ttft", +1},
	{"itl", +1},
	{"up", -1},
	{"serving", -1},
	{"finished_error", +1},
	{"http_5xx", +1},
	{"request_rejections", +1},
	{"preemptions", +1},
	{"abandoned", +1},
}

const (
	// maxOnsetLead is how long before the alert's condition the onset may lie.
	maxOnsetLead = 45 * time.Minute
	// maxLate caps the late part of the window.
	maxLate = 15 * time.Minute
	// minBasePoints is how many samples a baseline needs for a level.
	minBasePoints = 2
	// minBaseline is how long a baseline must be: shorter ones hold too few requests to be a level.
	minBaseline = 45 * time.Second
	// minOnsetPoints is how many samples before a change are needed to tell it from noise.
	minOnsetPoints = 4
)

// findWindows dates the onset and lays the incident window, its late part and the baseline.
func (o *observations) findWindows(p *plan, firing []float64) {
	n := o.grid.points()
	active := o.index(p.active)
	earliest := max(active-o.points(maxOnsetLead), 0)

	onset := -1
	for _, s := range onsetSignals {
		i, ok := o.deviatesSince(s.id, s.dir, earliest, active)
		if !ok {
			continue
		}
		o.onsets[s.id] = i
		if onset < 0 || i < onset {
			onset = i
		}
	}
	if i, ok := o.stalledSince(p); ok {
		o.onsets["generation_tokens"] = i
		if onset < 0 || i < onset {
			onset = i
		}
	}
	o.uncertainty = p.scrape
	if onset < 0 {
		onset = active
		if p.in.For > 0 {
			onset = o.index(p.end.Add(-p.in.For))
		} else if p.in.Status == StatusAdhoc {
			// Nothing deviates and nobody said when: the last five minutes, but never more than half of the data.
			onset = max(onset, n/2)
		}
		o.uncertainty = p.scrape + p.rate
	}
	// Signals that matter to the chain but do not date the incident get their own onset too.
	for _, id := range []string{"arrivals", "prompt_length", "output_length", "tokens_per_arrival", "params_n", "prefix_hit_ratio"} {
		dir := +1
		if id == "prefix_hit_ratio" {
			dir = -1
		}
		if i, ok := o.deviatesSince(id, dir, earliest, active); ok {
			o.onsets[id] = i
		}
	}
	if len(p.in.Alerts) > 0 {
		// What deviates only after the condition began did not bring it about. The first sample that can show the condition
		// is the one after it began.
		onset = min(onset, o.index(p.active.Add(o.grid.step-1)))
	}
	onset = min(o.beforeOutage(onset), n-2)
	if floor := o.index(p.end.Add(-6 * time.Hour)); onset < floor {
		onset = floor
	}
	o.onsetIdx = max(onset, 0)
	o.onset = o.time(o.onsetIdx)
	o.window = promRange{o.onsetIdx, n}
	o.late = o.lateOf(p)
	o.baseline = o.baselineOf(p, firing)
	if o.baseline.len() < minBasePoints || time.Duration(o.baseline.len())*o.grid.step < minBaseline {
		o.baseline = promRange{}
		if o.noBase == "" {
			o.noBase = "there is too little data before the onset"
		}
	}
}

// deviatesSince returns the grid index from which a signal has been off and stayed off until the end: at least two of
// three neighbouring points beyond the median of what was before by four robust standard deviations and the signal's
// floor. earliest bounds how far back it may lie; active is when the alert's condition began.
func (o *observations) deviatesSince(id string, dir, earliest, active int) (int, bool) {
	x := o.get(id)
	v := o.series(id)
	if v == nil {
		return 0, false
	}
	if x.sig.Class == kb.StateClass && dir > 0 {
		// A gauge that touches its ceiling again and again is at its ceiling: usage drops after every preemption.
		v = rollingMax(v, 4)
	}
	// What was before is not known yet: it is taken up to the alert's condition first, or, for a question without an
	// alert, up to ever earlier moments; then up to the onset found. An onset after that moment may be only the end of a
	// ramp that was taken for before: then earlier moments are tried too, and the earliest onset counts.
	n, found := len(v), -1
	for _, before := range []int{active - o.points(time.Minute), n * 3 / 4, n / 2, n / 3, n / 4, n / 6, n / 9} {
		if before < minOnsetPoints || before >= n-1 {
			continue
		}
		if found >= 0 && before < n/2 {
			break
		}
		at, ok := settleOnset(v, dir, x.sig.Floor, earliest, before)
		if !ok || found >= 0 && at >= found {
			continue
		}
		if found = at; at <= before {
			break
		}
	}
	return max(found, 0), found >= 0
}

// settleOnset finds the run of deviating points at the end of a series: with the points up to before as what was before,
// then with those up to the run found, and so on until that stays. What was taken for before may hold part of a ramp, so
// a queue that grows for long takes some rounds.
func settleOnset(v []float64, dir int, floor float64, earliest, before int) (int, bool) {
	const rounds = 10
	at := -1
	for range rounds {
		have := present(v[:before])
		if len(have) < minOnsetPoints {
			return 0, false
		}
		median := promq.Median(have)
		limit := median + float64(dir)*max(4*promq.Spread(have), floor, 0.15*math.Abs(median))
		at = runBackward(v, earliest, func(x float64) bool { return (x-limit)*float64(dir) > 0 })
		if at < 0 {
			return 0, false
		}
		if at < minOnsetPoints {
			return 0, false // Off since the data begins: nothing shows that it ever was otherwise.
		}
		if at == before {
			break
		}
		before = at
	}
	return at, true
}

// rollingMax is the largest of each point and the k-1 before it.
func rollingMax(v []float64, k int) []float64 {
	out := newSeries(len(v))
	for i := range v {
		for j := max(i-k+1, 0); j <= i; j++ {
			if !math.IsNaN(v[j]) && (math.IsNaN(out[i]) || v[j] > out[i]) {
				out[i] = v[j]
			}
		}
	}
	return out
}

// runBackward walks back from the end while of every three neighbouring known points two are off, and returns the first
// point of that run. It needs the run to hold in the last quarter of the points and to be at least two points long.
func runBackward(v []float64, earliest int, off func(float64) bool) int {
	first, count, misses := -1, 0, 0
	for i := len(v) - 1; i >= earliest; i-- {
		if math.IsNaN(v[i]) {
			continue
		}
		if off(v[i]) {
			first = i
			count++
			misses = 0
			continue
		}
		if misses++; misses >= 2 {
			break
		}
	}
	if count < 2 {
		return -1
	}
	return first
}

// lateOf is the settled half of the incident: after the last replica came back, clear of the rate window's ramp where the
// incident is long enough, at least three points.
func (o *observations) lateOf(p *plan) promRange {
	n := o.grid.points()
	from := o.onsetIdx
	if o.returned > from && o.returned < n-2 {
		from = o.returned
	}
	mid := from + (n-from)/2
	ramp := from + o.points(p.rate)
	start := max(mid, min(ramp, n-o.points(p.rate)))
	// What holds now: of an incident of hours not half of it.
	start = max(start, n-o.points(maxLate))
	// At least three points where there are as many, but none from before the onset.
	return promRange{max(min(start, n-3), min(from, n-1), 0), n}
}

// baselineOf is what lies before the onset: as long as the incident or longer, without the guard around the onset,
// without restarts and, where enough remains, without times at which alerts fired.
func (o *observations) baselineOf(p *plan, firing []float64) promRange {
	guard := 1 + o.points(p.scrape)
	end := o.onsetIdx - guard + 1
	begin := 0
	if o.window.len() < o.points(20*time.Minute) {
		begin = max(end-o.points(time.Hour), 0)
	}
	if running := o.series("serving"); running != nil {
		for begin < end && math.IsNaN(running[begin]) {
			begin++
		}
	}
	for _, r := range o.restarts {
		// A restart well before the onset: what came after it is the baseline; one beside the onset belongs to the incident.
		if r > begin && r < end {
			if end-r >= 2*minBasePoints && o.time(end).Sub(o.time(r)) > 5*time.Minute {
				begin = r + o.points(p.rate)
			} else {
				end = r - guard
			}
		}
	}
	if cut := lastFiring(firing, begin, end); cut > 0 {
		rest := end - cut
		if rest >= max(2*minBasePoints, (end-begin)/2) || rest >= max(3*minBasePoints, o.points(2*time.Minute)) {
			begin = cut
		}
	}
	if end <= begin {
		o.noBase = "the data begins with the incident"
		return promRange{}
	}
	return promRange{begin, end}
}

// lastFiring is the index after the last point of [from, to) at which an alert fired.
func lastFiring(firing []float64, from, to int) int {
	for i := min(to, len(firing)) - 1; i >= max(from, 0); i-- {
		if firing[i] > 0 {
			return i + 1
		}
	}
	return 0
}

// findRestarts notes when a replica's process start time moved and when the last replica came back.
func (o *observations) findRestarts(p *plan) {
	if v := o.series("start_time"); v != nil {
		last := math.NaN()
		for i, x := range v {
			if math.IsNaN(x) {
				continue
			}
			if !math.IsNaN(last) && x > last+1 {
				at := o.index(time.Unix(int64(x), 0))
				if !slices.Contains(o.restarts, at) {
					o.restarts = append(o.restarts, max(at, 0))
				}
				o.returned = max(o.returned, i)
			}
			last = x
		}
	}
	// Without process metrics (several API servers), a replica that serves again after it was gone tells the same.
	if v := o.series("up"); v != nil {
		started := o.series("start_time") != nil
		most := math.Inf(-1)
		for i := 1; i < len(v); i++ {
			if !math.IsNaN(v[i-1]) {
				most = max(most, v[i-1])
			}
			if !math.IsNaN(v[i]) && !math.IsNaN(v[i-1]) && v[i] > v[i-1] && i > o.points(p.scrape) {
				o.returned = max(o.returned, i)
				// More than ever before is a new replica and no restart.
				if !started && v[i] <= most {
					o.restarts = append(o.restarts, i)
				}
			}
		}
	}
}

// beforeOutage moves an onset that lies right behind an outage to where the outage began: a restart and what follows from
// it are one incident.
func (o *observations) beforeOutage(onset int) int {
	up := o.series("up")
	if up == nil || o.returned == 0 || onset > o.returned+o.points(2*time.Minute) || onset < 0 {
		return onset
	}
	full := promq.Max(present(up))
	i := o.returned - 1
	for i > 0 && !(at(up, i) >= full) {
		i--
	}
	if i+1 < o.returned && i+1 < onset {
		return i + 1
	}
	return onset
}
