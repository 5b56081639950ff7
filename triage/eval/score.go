package eval

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Result is what came of a run. Shares are 0 to 1; nil means that no case can tell.
type Result struct {
	Recordings int `json:"recordings"`
	Cases      int `json:"cases"`
	// AC1 and AC3 are the shares with the right bottleneck first, and among the first three; Avg5 is the mean of AC@1 to
	// AC@5. AC1Lenient accepts a second expert's answers.
	AC1        float64 `json:"ac1"`
	AC1Cases   float64 `json:"ac1_cases"`
	AC1Lenient float64 `json:"ac1_lenient"`
	AC3        float64 `json:"ac3"`
	AC3Cases   float64 `json:"ac3_cases"`
	Avg5       float64 `json:"avg5"`
	Avg5Cases  float64 `json:"avg5_cases"`
	TriggerAC1 float64 `json:"trigger_ac1"`
	// TriggerAC1Cases is the same over cases.
	TriggerAC1Cases float64  `json:"trigger_ac1_cases"`
	Place           *float64 `json:"place"`
	// NeverClaimBroken counts the cases in which an answer stood first that must not be given.
	NeverClaimBroken int `json:"never_claim_broken"`
	// FalseCauseOnCalm is the share of calm cases in which a cause is named with more than 0.5.
	FalseCauseOnCalm *float64 `json:"false_cause_on_calm"`
	// ConfidentWrong is the share of answers above 0.6 that even a second expert would not accept.
	ConfidentWrong *float64 `json:"confident_wrong"`
	Inconclusive   float64  `json:"inconclusive"`
	Crashes        int      `json:"crashes"`
	Brier          float64  `json:"brier"`
	ECE            float64  `json:"ece"`
	// ECEFloor is what a perfectly calibrated engine would show on average with these probabilities: so few cases cannot
	// prove less.
	ECEFloor float64 `json:"ece_floor"`
	// AC1Interval holds the 2.5 % and 97.5 % quantiles of AC1 when recordings are drawn anew (bootstrap).
	AC1Interval [2]float64 `json:"ac1_interval"`
	MedianS     float64    `json:"median_s"`
	MaxQueries  int        `json:"max_queries"`
	Chance      Chance     `json:"chance"`
	Reliability []Bin      `json:"reliability"`
	Confusion   []Confused `json:"confusion"`
	Outcomes    []Outcome  `json:"outcomes,omitempty"`
}

// Chance is what random order would score.
type Chance struct {
	Causes int     `json:"causes"`
	AC1    float64 `json:"ac1"`
	AC3    float64 `json:"ac3"`
	Avg5   float64 `json:"avg5"`
}

// Bin is one line of the reliability table: cases whose first answer has a probability in [From, To).
type Bin struct {
	From  float64 `json:"from"`
	To    float64 `json:"to"`
	Cases int     `json:"cases"`
	// Said is the mean probability, True the share that was right.
	Said float64 `json:"said"`
	True float64 `json:"true"`
}

// Confused is one line of the confusion table: what was answered where Truth was right.
type Confused struct {
	Truth   string        `json:"truth"`
	Cases   int           `json:"cases"`
	Right   int           `json:"right"`
	Answers []AnswerCount `json:"answers"`
}

// AnswerCount is how often an answer stood first.
type AnswerCount struct {
	ID    string `json:"id"`
	Cases int    `json:"cases"`
}

// reliabilityBins is how many bins of equal width the reliability table and the ECE have.
const reliabilityBins = 10

// Summarise computes all figures of some outcomes. causes is the number of bottlenecks that the engine chooses from.
func Summarise(outcomes []Outcome, causes int) Result {
	r := Result{Cases: len(outcomes), Outcomes: outcomes}
	byRec := byRecording(outcomes)
	r.Recordings = len(byRec)
	within := func(k int) func(Outcome) float64 { return func(o Outcome) float64 { return share(o.Rank <= k) } }
	accepted := func(o Outcome) float64 { return share(o.Accepted()) }
	trigger := func(o Outcome) float64 { return share(o.TriggerOK) }
	r.AC1, r.AC1Cases = macro(byRec, within(1)), mean(outcomes, within(1))
	r.AC3, r.AC3Cases = macro(byRec, within(3)), mean(outcomes, within(3))
	r.AC1Lenient = macro(byRec, accepted)
	for k := 1; k <= 5; k++ {
		r.Avg5 += macro(byRec, within(k)) / 5
		r.Avg5Cases += mean(outcomes, within(k)) / 5
	}
	r.TriggerAC1, r.TriggerAC1Cases = macro(byRec, trigger), mean(outcomes, trigger)

	r.Place = shareOf(outcomes, func(o Outcome) bool { return o.Place != nil }, func(o Outcome) bool { return *o.Place })
	r.FalseCauseOnCalm = shareOf(outcomes, Outcome.Calm, func(o Outcome) bool { return o.NamesCause(0.5) })
	r.ConfidentWrong = shareOf(outcomes, func(o Outcome) bool { return o.NamesCause(0.6) },
		func(o Outcome) bool { return !o.Accepted() })
	r.Inconclusive = mean(outcomes, func(o Outcome) float64 { return share(o.Inconclusive()) })
	for _, o := range outcomes {
		if o.Forbidden {
			r.NeverClaimBroken++
		}
		if o.Failure != "" {
			r.Crashes++
		}
		r.MaxQueries = max(r.MaxQueries, o.Queries)
	}
	points := pointsOf(outcomes)
	r.Brier, r.Reliability = brier(points), reliability(points)
	r.ECE, r.ECEFloor = ece(r.Reliability), eceFloor(points)
	r.AC1Interval = bootstrap(byRec, within(1))
	r.MedianS = medianSeconds(outcomes)
	r.Confusion = confusion(outcomes)
	if causes > 0 {
		n := float64(causes)
		r.Chance = Chance{Causes: causes, AC1: 1 / n, AC3: min(3/n, 1), Avg5: min(3/n, 1)}
	}
	return r
}

// byRecording groups outcomes, in the order in which recordings first occur.
func byRecording(outcomes []Outcome) [][]Outcome {
	index := map[string]int{}
	var out [][]Outcome
	for _, o := range outcomes {
		i, ok := index[o.Recording]
		if !ok {
			i = len(out)
			index[o.Recording] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], o)
	}
	return out
}

func share(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func mean[T any](all []T, f func(T) float64) float64 {
	if len(all) == 0 {
		return 0
	}
	sum := 0.0
	for _, x := range all {
		sum += f(x)
	}
	return sum / float64(len(all))
}

func macro(byRec [][]Outcome, f func(Outcome) float64) float64 {
	return mean(byRec, func(os []Outcome) float64 { return mean(os, f) })
}

// shareOf is the share of is among those that concern, nil when none does.
func shareOf(outcomes []Outcome, concerns, is func(Outcome) bool) *float64 {
	n, yes := 0, 0
	for _, o := range outcomes {
		if !concerns(o) {
			continue
		}
		n++
		if is(o) {
			yes++
		}
	}
	if n == 0 {
		return nil
	}
	v := float64(yes) / float64(n)
	return &v
}

// point is one first answer: its probability and whether it was right.
type point struct {
	recording string
	p         float64
	right     bool
}

func pointsOf(outcomes []Outcome) []point {
	out := make([]point, 0, len(outcomes))
	for _, o := range outcomes {
		out = append(out, point{o.Recording, o.Probability, o.Hit()})
	}
	return out
}

func brier(points []point) float64 {
	return mean(points, func(x point) float64 { return (x.p - share(x.right)) * (x.p - share(x.right)) })
}

func reliability(points []point) []Bin {
	bins := make([]Bin, reliabilityBins)
	for i := range bins {
		bins[i].From, bins[i].To = float64(i)/reliabilityBins, float64(i+1)/reliabilityBins
	}
	for _, x := range points {
		b := &bins[min(max(int(x.p*reliabilityBins), 0), reliabilityBins-1)]
		b.Cases++
		b.Said += x.p
		b.True += share(x.right)
	}
	out := bins[:0]
	for _, b := range bins {
		if b.Cases > 0 {
			b.Said /= float64(b.Cases)
			b.True /= float64(b.Cases)
			out = append(out, b)
		}
	}
	return out
}

// ece is the expected calibration error: how far what was said is from what was true, weighted by cases.
func ece(bins []Bin) float64 {
	n, sum := 0, 0.0
	for _, b := range bins {
		n += b.Cases
		sum += float64(b.Cases) * math.Abs(b.Said-b.True)
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

// draws is how many samples the simulations take; their seed is fixed, so that the figures are reproducible.
const draws = 2000

// eceFloor simulates outcomes that are exactly as likely as was said.
func eceFloor(points []point) float64 {
	if len(points) == 0 {
		return 0
	}
	rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // A simulation, not a secret.
	drawn := slices.Clone(points)
	sum := 0.0
	for range draws {
		for i := range drawn {
			drawn[i].right = rng.Float64() < drawn[i].p
		}
		sum += ece(reliability(drawn))
	}
	return sum / draws
}

// bootstrap draws recordings with replacement.
func bootstrap(byRec [][]Outcome, f func(Outcome) float64) [2]float64 {
	if len(byRec) == 0 {
		return [2]float64{}
	}
	each := make([]float64, len(byRec))
	for i, os := range byRec {
		each[i] = mean(os, f)
	}
	rng := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // A simulation, not a secret.
	means := make([]float64, draws)
	for d := range means {
		for range each {
			means[d] += each[rng.IntN(len(each))] / float64(len(each))
		}
	}
	slices.Sort(means)
	return [2]float64{means[draws*25/1000], means[draws*975/1000]}
}

func medianSeconds(outcomes []Outcome) float64 {
	if len(outcomes) == 0 {
		return 0
	}
	all := make([]float64, 0, len(outcomes))
	for _, o := range outcomes {
		all = append(all, o.Seconds)
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func confusion(outcomes []Outcome) []Confused {
	byTruth := map[string]*Confused{}
	for _, o := range outcomes {
		c, ok := byTruth[o.Truth]
		if !ok {
			c = &Confused{Truth: o.Truth}
			byTruth[o.Truth] = c
		}
		c.Cases++
		if o.Hit() {
			c.Right++
		}
		i := slices.IndexFunc(c.Answers, func(a AnswerCount) bool { return a.ID == o.First })
		if i < 0 {
			i = len(c.Answers)
			c.Answers = append(c.Answers, AnswerCount{ID: o.First})
		}
		c.Answers[i].Cases++
	}
	out := make([]Confused, 0, len(byTruth))
	for _, c := range byTruth {
		slices.SortFunc(c.Answers, func(a, b AnswerCount) int {
			if a.Cases != b.Cases {
				return b.Cases - a.Cases
			}
			return compareStrings(a.ID, b.ID)
		})
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Confused) int { return compareStrings(a.Truth, b.Truth) })
	return out
}
