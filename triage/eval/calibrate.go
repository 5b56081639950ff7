package eval

import (
	"fmt"
	"io"
	"math"
	"slices"
)

// Calibration maps the probability of a first answer to one that comes true as often as it says: σ(A·logit(p) + B). A = 1
// and B = 0 change nothing; A alone is a temperature of 1/A.
type Calibration struct {
	A float64 `json:"a"`
	B float64 `json:"b"`
}

// Identity is the calibration that changes nothing.
func Identity() Calibration { return Calibration{A: 1} }

// Apply maps one probability.
func (c Calibration) Apply(p float64) float64 { return logistic(c.A*logit(p) + c.B) }

// mostLogit bounds log-odds: probabilities of 0 and 1 come from rounding.
const mostLogit = 6.9

func logit(p float64) float64 {
	return min(max(math.Log(p/(1-p)), -mostLogit), mostLogit)
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// CrossValidation says how well calibrated first answers are, as they are and after a map that was fitted without the
// recording it is applied to.
type CrossValidation struct {
	Recordings int     `json:"recordings"`
	Cases      int     `json:"cases"`
	Before     Quality `json:"before"`
	After      Quality `json:"after"`
	// Temperature is the same with a map of A alone.
	Temperature Quality `json:"temperature"`
	// Chosen is the map fitted on all recordings, ChosenTemperature that of A alone.
	Chosen            Calibration `json:"chosen"`
	ChosenTemperature Calibration `json:"chosen_temperature"`
	// Spread holds the smallest and the largest A and B among the folds: how much one recording matters.
	Spread [2]Calibration `json:"spread"`
}

// Quality is how good probabilities are.
type Quality struct {
	ECE float64 `json:"ece"`
	// Floor is the ECE that a perfect engine with these probabilities would show.
	Floor       float64 `json:"ece_floor"`
	Brier       float64 `json:"brier"`
	LogLoss     float64 `json:"log_loss"`
	Reliability []Bin   `json:"reliability"`
}

// CrossValidate fits a map leaving out one recording at a time, with all its cases in all results, and applies it to that
// recording only. Several results may be given: the recordings as they are and transformed ones, so that there are
// mistakes to learn from. Recordings weigh the same, however many cases they have.
func CrossValidate(results ...Result) CrossValidation {
	var points []point
	for _, r := range results {
		points = append(points, pointsOf(r.Outcomes)...)
	}
	var ids []string
	for _, x := range points {
		if !slices.Contains(ids, x.recording) {
			ids = append(ids, x.recording)
		}
	}
	cv := CrossValidation{Recordings: len(ids), Cases: len(points), Before: quality(points)}
	platt, temp := slices.Clone(points), slices.Clone(points)
	for i, id := range ids {
		others := slices.DeleteFunc(slices.Clone(points), func(x point) bool { return x.recording == id })
		full, a := fit(others, true), fit(others, false)
		if i == 0 {
			cv.Spread = [2]Calibration{full, full}
		}
		cv.Spread[0] = Calibration{min(cv.Spread[0].A, full.A), min(cv.Spread[0].B, full.B)}
		cv.Spread[1] = Calibration{max(cv.Spread[1].A, full.A), max(cv.Spread[1].B, full.B)}
		for j := range points {
			if points[j].recording == id {
				platt[j].p, temp[j].p = full.Apply(points[j].p), a.Apply(points[j].p)
			}
		}
	}
	cv.After, cv.Temperature = quality(platt), quality(temp)
	cv.Chosen, cv.ChosenTemperature = fit(points, true), fit(points, false)
	return cv
}

func quality(points []point) Quality {
	bins := reliability(points)
	return Quality{
		ECE: ece(bins), Floor: eceFloor(points), Brier: brier(points), Reliability: bins,
		LogLoss: mean(points, func(x point) float64 {
			p := min(max(x.p, 0.001), 0.999)
			if x.right {
				return -math.Log(p)
			}
			return -math.Log(1 - p)
		}),
	}
}

// fit finds the map by Newton's method on the log-likelihood (Platt), with his smoothed targets and a weak pull towards
// the map that changes nothing: with few mistakes the data alone would ask for certainty.
func fit(points []point, offset bool) Calibration {
	const (
		rounds = 50
		pull   = 1.0 // As strong as one recording.
	)
	c := Identity()
	if len(points) == 0 {
		return c
	}
	weight := map[string]float64{}
	right, wrong := 0.0, 0.0
	for _, x := range points {
		weight[x.recording]++
	}
	for _, x := range points {
		if x.right {
			right += 1 / weight[x.recording]
		} else {
			wrong += 1 / weight[x.recording]
		}
	}
	yes, no := (right+1)/(right+2), 1/(wrong+2)
	for range rounds {
		// Gradient and Hessian of the negative log-likelihood.
		ga, gb := pull*(c.A-1), pull*c.B
		haa, hab, hbb := pull, 0.0, pull
		for _, x := range points {
			w, z, target := 1/weight[x.recording], logit(x.p), no
			if x.right {
				target = yes
			}
			q := logistic(c.A*z + c.B)
			ga += w * (q - target) * z
			gb += w * (q - target)
			haa += w * q * (1 - q) * z * z
			hab += w * q * (1 - q) * z
			hbb += w * q * (1 - q)
		}
		if !offset {
			step := ga / haa
			c.A -= step
			if math.Abs(step) < 1e-9 {
				break
			}
			continue
		}
		det := haa*hbb - hab*hab
		da, db := (hbb*ga-hab*gb)/det, (haa*gb-hab*ga)/det
		c.A -= da
		c.B -= db
		if math.Abs(da)+math.Abs(db) < 1e-9 {
			break
		}
	}
	return c
}

// WriteTable prints a cross-validation for people.
func (cv CrossValidation) WriteTable(w io.Writer) error {
	p := &printer{w: w}
	p.table(fmt.Sprintf("calibration, %d recordings left out in turn, %d cases\tECE\tperfect\tBrier\tlog loss", cv.Recordings, cv.Cases),
		func(row func(...any)) {
			line := func(name string, q Quality) { row(name, f3(q.ECE), f3(q.Floor), f3(q.Brier), f3(q.LogLoss)) }
			line("as answered", cv.Before)
			line(fmt.Sprintf("after σ(%.2f·logit p %+.2f)", cv.Chosen.A, cv.Chosen.B), cv.After)
			line(fmt.Sprintf("after σ(%.2f·logit p)", cv.ChosenTemperature.A), cv.Temperature)
		})
	fmt.Fprintf(w, "one recording moves A between %.2f and %.2f, B between %.2f and %.2f\n",
		cv.Spread[0].A, cv.Spread[1].A, cv.Spread[0].B, cv.Spread[1].B)
	writeReliability(p, cv.Before.Reliability)
	return p.err
}
