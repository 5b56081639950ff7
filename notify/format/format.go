// Package format writes quantities and times for people: 1.3k tok/s, 420 ms, 98 %, 3.2×, 14:02 KST.
package format

import (
	"math"
	"strconv"
	"strings"
	"time"

	"vllm-triage/notify/locale"
	"vllm-triage/triage"
)

// None stands for a value that is not there.
const None = "–"

// Formatter writes quantities in one language and time zone. The zero value is not usable; see New.
type Formatter struct {
	words *locale.Catalogue
	zone  *time.Location
	now   time.Time
}

// New returns a formatter. Clock times on another day than now carry their date. A nil zone is UTC.
func New(language string, zone *time.Location, now time.Time) Formatter {
	if zone == nil {
		zone = time.UTC
	}
	return Formatter{words: locale.For(language), zone: zone, now: now.In(zone)}
}

// Value writes a number of the given unit. Unknown units are written as bare numbers.
func (f Formatter) Value(v float64, unit triage.Unit) string {
	if math.IsNaN(v) {
		return None
	}
	switch unit {
	case triage.Seconds:
		return f.seconds(v)
	case triage.Ratio:
		return f.unit("percent", percent(v*100))
	case triage.Requests, triage.Count:
		if math.Abs(v) >= 9.95 && math.Abs(v) < 1e6 {
			v = math.Round(v) // Means of whole things: nobody looks for half a request among many.
		}
		return Number(v)
	case triage.RequestsPerSec:
		return f.unit("requests_per_second", Number(v))
	case triage.Tokens:
		return f.unit("tokens", Number(v))
	case triage.TokensPerSec:
		return f.unit("tokens_per_second", Number(v))
	case triage.PerSecond:
		return f.unit("per_second", Number(v))
	case triage.Times:
		return f.unit("times", Number(v))
	case triage.Bytes:
		return Bytes(v)
	case triage.Timestamp:
		return f.timestamp(v)
	case triage.Cores:
		return f.unit("cores", Number(v))
	case triage.Celsius:
		return f.unit("celsius", Number(v))
	case triage.Watts:
		return f.unit("watts", Number(v))
	case triage.Megahertz:
		if math.Abs(v) >= 1000 {
			return f.unit("gigahertz", Number(v/1000))
		}
		return f.unit("megahertz", Number(v))
	default:
		return Number(v)
	}
}

// Change writes "before → during"; a value that is not there is a dash, and a missing baseline leaves the arrow out.
func (f Formatter) Change(before, during *float64, unit triage.Unit) string {
	after := None
	if during != nil {
		after = f.Value(*during, unit)
	}
	if before == nil {
		return after
	}
	return f.Value(*before, unit) + " → " + after
}

// Duration writes a length of time with at most two units: 45 s, 3 min 20 s, 1 h 20 min, 2 d 3 h.
func (f Formatter) Duration(d time.Duration) string {
	if d < 0 {
		return "-" + f.Duration(-max(d, -math.MaxInt64))
	}
	switch {
	case d < time.Second:
		return f.unit("milliseconds", strconv.FormatInt(d.Milliseconds(), 10))
	case d < time.Minute:
		return f.two(d.Round(time.Second), "seconds", time.Second, "", 0)
	case d < 10*time.Minute:
		return f.two(d.Round(time.Second), "minutes", time.Minute, "seconds", time.Second)
	case d < time.Hour-30*time.Second:
		return f.two(d.Round(time.Minute), "minutes", time.Minute, "", 0)
	case d < 24*time.Hour-30*time.Second:
		return f.two(d.Round(time.Minute), "hours", time.Hour, "minutes", time.Minute)
	default:
		return f.two(d.Round(time.Hour), "days", 24*time.Hour, "hours", time.Hour)
	}
}

func (f Formatter) two(d time.Duration, big string, bigUnit time.Duration, small string, smallUnit time.Duration) string {
	out := f.unit(big, strconv.FormatInt(int64(d/bigUnit), 10))
	if smallUnit == 0 {
		return out
	}
	if rest := int64(d % bigUnit / smallUnit); rest > 0 {
		out += " " + f.unit(small, strconv.FormatInt(rest, 10))
	}
	return out
}

// Clock writes the time of day with its zone, 14:02 KST, and the date before it when it is not today.
func (f Formatter) Clock(t time.Time) string { return f.clock(t, "15:04 MST") }

// ClockSeconds writes the time of day to the second and without the zone, for lists that say the zone once.
func (f Formatter) ClockSeconds(t time.Time) string { return f.clock(t, "15:04:05") }

// Zone is the abbreviation of the zone at a time, for example KST or +05.
func (f Formatter) Zone(t time.Time) string { return t.In(f.zone).Format("MST") }

func (f Formatter) clock(t time.Time, layout string) string {
	local := t.In(f.zone)
	clock := local.Format(layout)
	if local.Year() == f.now.Year() && local.YearDay() == f.now.YearDay() {
		return clock
	}
	months := strings.Fields(f.words.Text("unit.months"))
	date := f.words.Fill("unit.date",
		"month", months[local.Month()-1], "day", strconv.Itoa(local.Day()), "clock", clock)
	if local.Year() != f.now.Year() {
		return strconv.Itoa(local.Year()) + " " + date
	}
	return date
}

func (f Formatter) timestamp(v float64) string {
	// Years 1 to 9999; anything else is not a time that somebody wants to read.
	if v < -62135596800 || v > 253402300799 {
		return Number(v)
	}
	sec, frac := math.Modf(v)
	return f.Clock(time.Unix(int64(sec), int64(frac*1e9)))
}

func (f Formatter) seconds(v float64) string {
	abs := math.Abs(v)
	switch {
	case abs == 0:
		return f.unit("seconds", "0")
	case abs < 0.9995:
		return f.unit("milliseconds", Number(v*1000))
	case abs < 119.5:
		return f.unit("seconds", Number(v))
	case abs < math.MaxInt64/float64(time.Second):
		return f.Duration(time.Duration(v * float64(time.Second)))
	default:
		return f.unit("seconds", Number(v))
	}
}

func (f Formatter) unit(name, n string) string { return f.words.Fill("unit."+name, "n", n) }

// percent keeps what matters near both ends: 0.4 is not 0 and 99.7 is not 100.
func percent(p float64) string {
	abs := math.Abs(p)
	if abs < 100 && abs >= 99.5 {
		return trim(strconv.FormatFloat(math.Copysign(math.Floor(abs*10)/10, p), 'f', 1, 64))
	}
	if abs >= 9.95 && abs < 1e6 {
		return strconv.FormatFloat(math.Round(p), 'f', 0, 64)
	}
	return Number(p)
}

// Number writes a bare number with two or three digits that count: 0.042, 3.2, 61, 1.3k, 2M.
func Number(v float64) string {
	switch {
	case math.IsNaN(v):
		return None
	case math.IsInf(v, 1):
		return "∞"
	case math.IsInf(v, -1):
		return "-∞"
	}
	abs := math.Abs(v)
	if abs < 999.5 {
		return digits(v)
	}
	for _, suffix := range []string{"k", "M", "G", "T"} {
		v /= 1000
		if math.Abs(v) < 999.5 {
			return digits(v) + suffix
		}
	}
	return strconv.FormatFloat(v*1e12, 'e', 1, 64)
}

// Bytes writes a size in binary units: 1.5 GiB.
func Bytes(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Number(v)
	}
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for math.Abs(v) >= 999.5 && i < len(units)-1 {
		v /= 1024
		i++
	}
	return Number(v) + " " + units[i]
}

func digits(v float64) string {
	abs := math.Abs(v)
	switch {
	case abs == 0:
		return "0"
	case abs >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case abs >= 0.995:
		return trim(strconv.FormatFloat(v, 'f', 1, 64))
	case abs >= 0.001:
		// Two digits that count, written without an exponent.
		decimals := 1 - int(math.Floor(math.Log10(abs)))
		return trim(strconv.FormatFloat(v, 'f', decimals, 64))
	default:
		return strconv.FormatFloat(v, 'e', 0, 64)
	}
}

func trim(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}
