package triage

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// textArg is one value that stands in a sentence.
type textArg struct {
	name string
	arg  Arg
}

// text builds a sentence from an English template in which {name} stands for an argument.
func text(key, template string, args ...textArg) Text {
	t := Text{Key: key}
	if len(args) > 0 {
		t.Args = make(map[string]Arg, len(args))
	}
	pairs := make([]string, 0, 2*len(args))
	for _, a := range args {
		t.Args[a.name] = a.arg
		pairs = append(pairs, "{"+a.name+"}", a.arg.String())
	}
	t.Text = strings.NewReplacer(pairs...).Replace(template)
	return t
}

func number(name string, v float64, unit Unit) textArg {
	return textArg{name, Arg{Number: &v, Unit: unit}}
}

func word(name, s string) textArg { return textArg{name, Arg{Word: s}} }

// String formats the value for an English reader.
func (a Arg) String() string {
	if a.Number == nil {
		return a.Word
	}
	return FormatQuantity(*a.Number, a.Unit)
}

// FormatQuantity writes a number of a unit for people, with about three significant digits: "1.3k tok/s", "420 ms", "98 %".
func FormatQuantity(v float64, unit Unit) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	switch unit {
	case Seconds:
		return formatSeconds(v)
	case Ratio:
		return formatPercent(v)
	case Requests:
		return short(v)
	case RequestsPerSec:
		return short(v) + " req/s"
	case Tokens:
		return short(v) + " tokens"
	case TokensPerSec:
		return short(v) + " tok/s"
	case PerSecond:
		return short(v) + "/s"
	case Times:
		return short(v) + "×"
	case Bytes:
		return short(v) + "B"
	case Timestamp:
		return time.Unix(int64(v), 0).UTC().Format("15:04:05 UTC")
	case Cores:
		return short(v) + " cores"
	case Celsius:
		return short(v) + " °C"
	case Watts:
		return short(v) + " W"
	case Megahertz:
		return short(v) + " MHz"
	case Count:
		return short(v)
	}
	return short(v)
}

func formatSeconds(v float64) string {
	switch abs := math.Abs(v); {
	case abs < 0.0005:
		return "0 ms"
	case abs < 0.9995:
		return digits(v*1000) + " ms"
	case abs < 100:
		return digits(v) + " s"
	case abs < 7200:
		return strconv.Itoa(int(math.Round(v/60))) + " min"
	default:
		return digits(v/3600) + " h"
	}
}

func formatPercent(v float64) string {
	p := v * 100
	if math.Abs(p) < 9.95 && math.Abs(p-math.Round(p)) > 0.05 {
		return strconv.FormatFloat(p, 'f', 1, 64) + " %"
	}
	return strconv.Itoa(int(math.Round(p))) + " %"
}

// short writes large numbers with a suffix.
func short(v float64) string {
	switch abs := math.Abs(v); {
	case abs >= 999.5e6:
		return digits(v/1e9) + "G"
	case abs >= 999.5e3:
		return digits(v/1e6) + "M"
	case abs >= 9995:
		return digits(v/1e3) + "k"
	case abs >= 999.5:
		return strconv.FormatFloat(math.Round(v), 'f', 0, 64)
	default:
		return digits(v)
	}
}

// digits keeps about three significant digits and no trailing zeros.
func digits(v float64) string {
	decimals := 2
	switch abs := math.Abs(v); {
	case abs >= 99.95:
		decimals = 0
	case abs >= 9.995:
		decimals = 1
	}
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if s == "-0" {
		return "0"
	}
	return s
}

// fill replaces {name} in a template by the arguments; it reports false when one is unknown.
func fill(template string, args map[string]Arg) (string, bool) {
	var b strings.Builder
	known := true
	for {
		i := strings.IndexByte(template, '{')
		if i < 0 {
			break
		}
		j := strings.IndexByte(template[i:], '}')
		if j < 0 {
			break
		}
		name := template[i+1 : i+j]
		b.WriteString(template[:i])
		if a, ok := args[name]; ok {
			b.WriteString(a.String())
		} else {
			known = false
			fmt.Fprintf(&b, "{%s}", name)
		}
		template = template[i+j+1:]
	}
	b.WriteString(template)
	return b.String(), known
}

// placeholders lists the names that stand in braces in a template.
func placeholders(template string) []string {
	var out []string
	for {
		i := strings.IndexByte(template, '{')
		if i < 0 {
			return out
		}
		j := strings.IndexByte(template[i:], '}')
		if j < 0 {
			return out
		}
		out = append(out, template[i+1:i+j])
		template = template[i+j+1:]
	}
}
